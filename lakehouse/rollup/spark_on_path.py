"""A lake on a path, rolled up by Spark: Spark reads bronze and runs the kernel, delta-rs writes.

Planning, lease, progress and the commits are those of the local engine: on a path delta-rs is the
one writer of gold, whoever computes. Spark writes ``gold/staging`` and nothing else, and it is not
started where there is nothing to compute.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from lakehouse.rollup import local_rows
from lakehouse.rollup.engine import Staged, ask
from lakehouse.rollup.local_engine import LocalEngine
from lakehouse.rollup.spark_engine import STAGING, SparkEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from lakehouse.kernel.worker import Program
    from lakehouse.lake import Lake
    from lakehouse.rollup.batches import Batch

LARGE: Final = 1_000_000
"""Rows of bronze/runs from which on compiling what Spark runs takes less time than it saves."""


class SparkOnPath(LocalEngine):
    """A rollup's engine where gold lies on a path and Spark computes; see ``engine.Engine``.

    Args:
        lake: A lake whose tables all lie below its root.
        start: Gives the session, for rollups that are large or not; called once, by the first
            batch.
        options: Storage options of delta-rs, beside those in the environment.
    """

    def __init__(
        self,
        lake: Lake,
        start: Callable[[bool], SparkSession],
        options: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(lake, options)
        self.most_rows = SparkEngine.most_rows
        self.scratch = (STAGING,)
        self._start = start
        self._spark: SparkEngine | None = None

    def compute(self, batch: Batch, program: Program) -> Staged:
        """Run the kernel in Spark's workers; what it made lies in gold/staging."""
        self._spark = self._spark or SparkEngine(self._start(batch.rows >= LARGE), self.lake)
        version = self._spark.stage(batch, program)
        files = defaultdict(list)
        for file in self._store.files(self.open(STAGING, version), "", None):
            files[file.keys[0]].append(file.place)
        rows = {
            name: local_rows.of_parquet(files[name], [column for column, _ in columns])
            for name, columns in program.schemas.items()
            if name in files
        }
        counts = {
            name: ask(self, "SELECT count(*) FROM {rows} r", rows=one)[0][0]
            for name, one in rows.items()
        }
        return Staged(counts, rows)
