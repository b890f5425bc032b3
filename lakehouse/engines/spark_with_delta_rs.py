"""A lake on a path, rolled up by Spark: Spark reads bronze and runs the kernel, delta-rs writes.

Planning, lease, progress and commits are those of the local engine: on a path delta-rs is the only
writer of gold. Spark writes only ``gold/staging``, and starts only if there is work to compute.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import SparkSession

from lakehouse import tables
from lakehouse.core import missing_files
from lakehouse.core.lake import Lake
from lakehouse.engines import local_relations
from lakehouse.engines.engine import Staged
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.rollup_batches import Batch
from lakehouse.engines.spark_engine import STAGING, SparkEngine
from lakehouse.kernel.run_in_duckdb import Program

LARGE: Final = 1_000_000
"""Rows of bronze/runs from which on Spark's code generation saves more time than it takes."""


class SparkOnPath(LocalEngine):
    """A rollup's engine where gold lies on a path and Spark computes; see ``engine.Engine``.

    Args:
        lake: A lake whose tables all lie below its root.
        start: Gives the session, for rollups that are large or not; called once, by the first
            batch.
        options: Storage options of delta-rs, beside those in the environment.
    """

    def __init__(
        self, lake: Lake, start: Callable[[bool], SparkSession], options: Mapping[str, str]
    ) -> None:
        super().__init__(lake, options)
        self.most_rows = SparkEngine.most_rows
        self.scratch = (STAGING,)
        self._start = start
        self._spark: SparkEngine | None = None

    def compute(self, batch: Batch, program: Program) -> Staged:
        """Run the kernel in Spark's workers; its rows are in gold/staging."""
        self._spark = self._spark or SparkEngine(self._start(batch.rows >= LARGE), self.lake)
        try:
            version = self._spark.stage(batch, program)
        except Exception:
            for table in (tables.RUNS, tables.SCRAPES, tables.MEMBERS):
                missing_files.refuse(self.open(table), self._store.url(table))
            raise
        files = defaultdict(list)
        for file in self._store.files(self.open(STAGING, version), "", None):
            files[file.keys[0]].append(file.place)
        return {
            name: local_relations.of_parquet(files[name], columns)
            for name, columns in program.schemas.items()
            if name in files
        }
