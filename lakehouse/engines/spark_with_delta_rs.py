"""Engine for a lake on a path with Spark: Spark reads bronze and runs the kernel, delta-rs writes.

Planning, lease, progress and commits are inherited from the local engine: on a path only delta-rs
writes gold. Spark receives lists of Parquet files, so it needs no Delta, and starts only if there
are hours to compute.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from lakehouse.core import table_faults
from lakehouse.core.delta_rs import url_of
from lakehouse.core.lake import Lake
from lakehouse.core.periods import Period
from lakehouse.engines import packets, spark_jobs, spark_relations
from lakehouse.engines.engine import ComputedBatch, PartDone, named_sets, span_of
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.local_relations import Packed
from lakehouse.engines.relation import Relation, source
from lakehouse.engines.rollup_batches import Batch, Bronze
from lakehouse.engines.spark_engine import most_rows, one_line
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.tables import MEMBERS, RUNS, SCRAPES, Table

_MOST_ROWS: Final = 75_000_000
"""Maximum rows of a batch. Its rows of gold, packed into about 11 bytes each, then fit into memory
and into spark.driver.maxResultSize (1 GB), even if gold has as many rows as bronze."""


class SparkWithDeltaRs(LocalEngine):
    """Engine that computes with Spark while gold is on a path; see ``engine.Engine``.

    Args:
        lake: A lake with all tables below its root.
        start: Returns the session. Called once, when there are hours to plan.
        options: Storage options of delta-rs, in addition to the environment.
    """

    def __init__(
        self, lake: Lake, start: Callable[[], SparkSession], options: Mapping[str, str]
    ) -> None:
        super().__init__(lake, options)
        self._start = start

    @cached_property
    def _spark(self) -> SparkSession:
        return self._start()

    @cached_property
    def cores(self) -> int:
        """Number of tasks that Spark runs at the same time."""
        return spark_jobs.cores(self._spark)

    @cached_property
    def most_rows(self) -> int:  # type: ignore[override]  # known once Spark runs
        """Default maximum of bronze/runs rows in a batch."""
        return min(most_rows(self.cores), _MOST_ROWS)

    @contextmanager
    def compute(
        self, batch: Batch, program: Program, label: str, step: Callable[[PartDone], None]
    ) -> Iterator[ComputedBatch]:
        """Run the kernel in Spark's workers. Its rows return as packets, and stay packed."""
        at, span = batch.versions, span_of(batch.units.hours)
        running = spark_jobs.running(self._spark, batch, label, step)
        with running, one_line(self.lake.root):
            bronze = Bronze(
                self._parquet(RUNS, at.runs, span),
                self._parquet(SCRAPES, at.scrapes, span),
                self.collect(named_sets(self, batch)),
            )
            try:
                made = spark_jobs.frame(self._spark, bronze, batch, program).toArrow()
            except Exception:
                for table in (RUNS, SCRAPES, MEMBERS):
                    table_faults.refuse(self.open(table), self._store.url(table))
                raise
        found: defaultdict[str, list[pa.Buffer]] = defaultdict(list)
        for name, rows in zip(made["target"].to_pylist(), made["rows"], strict=True):
            found[name].append(rows.as_buffer())
        costs = spark_jobs.costs(found.pop(packets.COST))
        yield ComputedBatch({name: source(Packed(some)) for name, some in found.items()}, costs)

    def _parquet(self, table: Table, version: int, span: Period) -> Relation:
        """Return the rows of a period of a table, read from its files."""
        delta = self.open(table, version)
        places = self._store.places(table, delta, span)
        schema = ", ".join(column.ddl for column in table.columns)
        files = self._spark.read.schema(schema).option("basePath", url_of(delta))
        rows = files.parquet(*places) if places else self._spark.createDataFrame([], schema)
        inside = rows.where(spark_relations.inside(table.column_names, span))
        return source(spark_relations.related(inside, table, url_of(delta)))
