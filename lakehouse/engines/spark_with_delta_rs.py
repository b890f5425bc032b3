"""A lake on a path, rolled up by Spark: Spark reads bronze and runs the kernel, delta-rs writes.

Planning, lease, progress and commits are those of the local engine: on a path delta-rs is the only
writer of gold. Spark gets lists of Parquet files, so it needs no Delta, and starts only if there
is work to compute.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakehouse import tables
from lakehouse.core import missing_files, spark_session
from lakehouse.core.delta_rs import url_of
from lakehouse.core.lake import Lake
from lakehouse.core.periods import Period
from lakehouse.engines import local_relations, packets, spark_jobs, spark_kernel, spark_relations
from lakehouse.engines.costs import PartDone
from lakehouse.engines.engine import ComputedBatch, instant_of, span_of
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.relation import source
from lakehouse.engines.rollup_batches import Batch
from lakehouse.engines.spark_engine import most_rows, one_line
from lakehouse.kernel.run_in_duckdb import Program
from lakehouse.tables import Table

_MOST_ROWS: Final = 75_000_000
"""Rows of a batch whose gold fits into memory, packed, and below spark.driver.maxResultSize (1 GB):
where gold has as many rows as bronze, some 11 bytes each."""


class SparkOnPath(LocalEngine):
    """A rollup's engine where gold lies on a path and Spark computes; see ``engine.Engine``.

    Args:
        lake: A lake whose tables all lie below its root.
        start: Gives the session; called once, when there is work to plan.
        options: Storage options of delta-rs, beside those in the environment.
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
        """The tasks that Spark runs at once."""
        with spark_jobs.job(self._spark, f"{spark_jobs.ROLLUP} cores"):
            return spark_session.cores(self._spark)

    @cached_property
    def most_rows(self) -> int:  # type: ignore[override]  # known once Spark runs
        """Rows of bronze/runs that a batch has by default."""
        return min(most_rows(self.cores), _MOST_ROWS)

    def compute(
        self, batch: Batch, program: Program, label: str, step: Callable[[PartDone], None]
    ) -> ComputedBatch:
        """Run the kernel in Spark's workers; its rows come back as packets, which stay packed."""
        at, span = batch.versions, span_of(batch.units.hours)
        running = spark_kernel.running(self._spark, batch, label, step)
        with running, one_line(self.lake.root):
            bronze = spark_kernel.Bronze(
                self._frame(tables.RUNS, at.runs, span),
                self._frame(tables.SCRAPES, at.scrapes, span),
                self._spark.createDataFrame(_with_a_chunk(self.named_sets(batch))),
            )
            try:
                made = spark_kernel.frame(bronze, batch, program).toArrow()
            except Exception:
                for table in (tables.RUNS, tables.SCRAPES, tables.MEMBERS):
                    missing_files.refuse(self.open(table), self._store.url(table))
                raise
        found: defaultdict[str, list[pa.Buffer]] = defaultdict(list)
        for name, rows in zip(made["target"].to_pylist(), made["rows"], strict=True):
            found[name].append(rows.as_buffer())
        costs = spark_kernel.costs(found.pop(packets.COST))
        rows = {name: source(local_relations.Packed(some)) for name, some in found.items()}
        return ComputedBatch(rows, costs)

    def _frame(self, table: Table, version: int, span: Period) -> DataFrame:
        """The rows of a table that lie in a span and under their own date."""
        delta = self.open(table, version)
        places = self._store.places(delta, instant_of(table.column_names), span)
        schema = ", ".join(column.ddl for column in table.columns)
        files = self._spark.read.schema(schema).option("basePath", url_of(delta))
        rows = files.parquet(*places) if places else self._spark.createDataFrame([], schema)
        inside = rows.where(spark_relations.inside(table.column_names, span))
        related = spark_relations.related(inside, table, url_of(delta))
        return related.where("NOT misdated")


def _with_a_chunk(rows: pa.Table) -> pa.Table:
    """The same rows, in chunks that PySpark takes: columns of lists must have one (4.2.0)."""
    none = pa.RecordBatch.from_pylist([], rows.schema)
    return pa.Table.from_batches(rows.to_batches() or [none])
