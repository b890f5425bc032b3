"""Bronze in place: rows of the touched hours, each in its window, before anybody judges them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, judgement, standing, tables
from lakehouse import lake as lakes
from lakehouse.lake import Lake
from lakehouse.units import Units, Versions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DAY_US: Final = 86_400_000_000
_SUMMED: Final = tuple(
    column
    for column in tables.CONDENSED.columns
    if column.name not in {*tables.RUNS.column_names, "window", "loose"}
)
"""Columns that only rows have that were put together (see ``condensed``)."""


@dataclass(frozen=True)
class Placed:
    """What one rollup reads.

    Attributes:
        versions: The versions of bronze that are read.
        committed: When the newest of them was committed; nothing can have been seen later.
        units: The hours that are recomputed.
        window_seconds: Finest grain, seconds.
        condensed_at: Version of gold/condensed that holds the runs of these hours in short; None:
            they are read as they were written.
    """

    spark: SparkSession
    lake: Lake
    versions: Versions
    committed: dt.datetime
    units: Units
    window_seconds: int
    condensed_at: int | None = None

    def placed_runs(self, *, loose: bool = False, by_hour: bool = False) -> DataFrame:
        """All runs of the touched hours, with ``window``, not judged yet.

        Args:
            loose: With those too that are part of another row here.
            by_hour: Rows that stand for several windows are one (see ``standing``).
        """
        if self.condensed_at is None:
            return _with_empty_sums(self._placed(tables.RUNS, self.versions.runs))
        rows = lakes.read(self.spark, self.lake, tables.CONDENSED, self.condensed_at)
        rows = rows if loose else rows.where("NOT loose")
        return rows if by_hour else standing.in_each_window(rows, self.window_seconds)

    def placed_scrapes(self) -> DataFrame:
        """All rows of the agents' own account in the touched hours, with ``window``."""
        return self._placed(tables.SCRAPES, self.versions.scrapes)

    def misplaced(self) -> Column:
        """Why a row cannot be where it is in time, else null."""
        return judgement.misplaced(self.committed, self.window_seconds)

    def _placed(self, table: tables.Table, version: int) -> DataFrame:
        rows = lakes.read(self.spark, self.lake, table, version)
        hours = self.units.hours
        first, last = hours[0], hours[-1] + dt.timedelta(hours=1)
        rows = rows.where(
            F.col("date").isin(*self.units.dates)
            & F.col("cluster").isin(*self.units.clusters)
            & (F.col("start") >= F.lit(first))
            & (F.col("start") < F.lit(last))
            # Others are set aside as they come: by date they would be found or not (see aside).
            & F.expr(f"unix_date(date) = unix_micros(start) div {_DAY_US}")
        )
        if last - first != dt.timedelta(hours=len(hours)):
            rows = rows.where(F.date_trunc("hour", "start").isin(*hours))
        window = grains.start(F.col("start"), grains.name(self.window_seconds))
        return rows.withColumn("window", window)


def _with_empty_sums(rows: DataFrame) -> DataFrame:
    """Rows of bronze with the columns of those that were put together, empty."""
    return rows.withColumns({column.name: F.lit(None).cast(column.type) for column in _SUMMED})
