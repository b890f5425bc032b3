"""Rows of gold over a period: those of hours, or of the finest windows.

Days and weeks are sums of hours, made when they are asked for.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import tables
from lakehouse.errors import PeriodError, TableNotFoundError, TableSchemaError
from lakehouse.lake import Lake
from lakehouse.periods import HOUR_US, Period, instant, micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.tables import Table


EXACT: Final = "decimal(38,6)"
"""Sums of doubles depend on their order, and would differ after a re-run; sums of these do not."""

# A mean, or what the first window alone tells, is not asked of many windows together.
_COMBINED: Final = {"sum": F.sum, "max": F.max, "min": F.min, "any": F.max}


@dataclass(frozen=True, slots=True)
class GoldRows:
    """Where gold is.

    Attributes:
        window_us: Length of its finest windows.
    """

    spark: SparkSession
    lake: Lake
    window_us: int
    _kept: list[dt.date] = field(default_factory=list, compare=False, repr=False)

    def hours(self, table: Table, period: Period) -> DataFrame:
        """Rows of the table itself that begin in a period: those of hours."""
        return _within(lakes.read(self.spark, self.lake, table), period)

    def windows(self, table: Table, period: Period) -> DataFrame:
        """Rows of the finest windows that begin in a period.

        Raises:
            PeriodError: They are kept no more.
        """
        if not self.are_kept(period.start.date()):
            raise PeriodError(
                f"{self.lake.root}: of {period.start:%Y-%m-%d} gold keeps whole hours alone, and "
                "this needs its finest windows; ask for a later period"
            )
        finest = tables.WINDOWS[table.name]
        rows = _within(lakes.read(self.spark, self.lake, finest), period)
        return rows.unionByName(self._good_throughout(period)) if table is tables.SLI else rows

    def whole(self, table: Table, period: Period) -> DataFrame:
        """Rows of the hours that a period is made of, else of its finest windows."""
        return self.hours(table, period) if is_hourly(period) else self.windows(table, period)

    def number(self, period: Period) -> int:
        """How many hours, or windows, these are."""
        return period.microseconds // (HOUR_US if is_hourly(period) else self.window_us)

    def after(self, table: Table, period: Period) -> DataFrame:
        """Rows that begin as a period ends: what was first seen in them may have begun in it."""
        end_us = micros(period.end)
        if end_us % HOUR_US == 0:  # an hour's row says what its first window says
            return self.hours(table, Period.of((end_us, end_us + HOUR_US)))
        return self.windows(table, Period.of((end_us, end_us + self.window_us)))

    def are_kept(self, since: dt.date) -> bool:
        """Whether there are finest windows from a date on, as far as there are hours."""
        if any(since >= known for known in self._kept):
            return True
        try:  # of whatever was read, or was to be, there is a row
            hours = lakes.read(self.spark, self.lake, tables.COVERAGE)
            windows = lakes.read(self.spark, self.lake, tables.WINDOWS[tables.COVERAGE.name])
        except TableNotFoundError:
            return True
        first = _oldest(hours.where(F.col("date") >= F.lit(since)))
        finest = _oldest(windows)
        kept = first is None or (finest is not None and finest <= first)
        self._kept.extend([since] * kept)
        return kept

    def _good_throughout(self, period: Period) -> DataFrame:
        """Windows of gold/sli in hours that were good throughout: gold keeps the hour alone."""
        first = instant(micros(period.start) // HOUR_US * HOUR_US)
        hours = self.hours(tables.SLI, Period(first, period.end))
        hours = hours.where(f"good_us = {HOUR_US} AND bad_high_us = 0")
        each = f"explode(sequence(0L, {HOUR_US - self.window_us}L, {self.window_us}L))"
        rows = hours.withColumn("offset", F.expr(each)).withColumns(
            {
                "window": F.expr("timestamp_micros(unix_micros(`window`) + offset)"),
                "good_us": F.lit(self.window_us).cast("bigint"),
                "seen_us": F.expr(f"IF(seen_us IS NULL, NULL, {self.window_us}L)"),
            }
        )
        return _within(rows.drop("offset"), period)


class Reached(NamedTuple):
    """How far gold is.

    Attributes:
        window_seconds: Length of its finest windows.
        committed: When the newest commit of bronze was made that is rolled up, as far as known.
    """

    window_seconds: int
    committed: dt.datetime | None


def reached(spark: SparkSession, lake: Lake) -> Reached:
    """How far gold is.

    Raises:
        TableNotFoundError: There is no gold yet.
        TableSchemaError: Gold is as an older version left it.
        PeriodError: Nothing has been rolled up yet.
    """
    rows = lakes.read(spark, lake, tables.PROGRESS)
    if set(tables.PROGRESS.column_names) - set(rows.columns):
        raise TableSchemaError(
            f"{lake.root}: an older jmxlake rolled it up last; run jmxlake rollup first"
        )
    newest = rows.orderBy(F.desc("at")).limit(1)
    found = newest.select("window_seconds", F.unix_micros("committed").alias("us")).collect()
    if not found:
        raise PeriodError(f"{lake.root}: nothing is rolled up there; run jmxlake rollup first")
    ((seconds, us),) = found
    return Reached(seconds, None if us is None else instant(us))


def is_hourly(period: Period) -> bool:
    """Whether a period is made of whole hours."""
    return all(micros(end) % HOUR_US == 0 for end in (period.start, period.end))


def summed(rows: DataFrame, table: Table, keys: Sequence[str]) -> DataFrame:
    """Rows of a table put together, per keys."""
    combined = []
    for column in table.measures:
        if combine := _COMBINED.get(column.over):
            is_exact = column.over != "sum" or column.type != "double"
            value = F.col(column.name) if is_exact else F.col(column.name).cast(EXACT)
            combined.append(combine(value).cast(column.type).alias(column.name))
    return rows.groupBy(*quoted(keys)).agg(*combined)


def quoted(names: Sequence[str]) -> list[str]:
    """Column names as Spark SQL wants them where they are words of its own."""
    return [f"`{name}`" for name in names]


def before_window(spill: str, high: str, seen: str) -> Column:
    """What of a row's upper bound may lie before its first window.

    Rows that an older version rolled up do not say; there it is the most that it may be.
    """
    return F.coalesce(F.col(spill), F.greatest(F.lit(0), F.col(high) - F.col(seen)))


def _within(rows: DataFrame, period: Period) -> DataFrame:
    """Rows whose window begins in a period; by date, files are left out."""
    last = period.end - dt.timedelta(microseconds=1)
    return rows.where(
        F.col("date").between(F.lit(period.start.date()), F.lit(last.date()))
        & (F.col("window") >= F.lit(period.start))
        & (F.col("window") < F.lit(period.end))
    )


def _oldest(rows: DataFrame) -> dt.date | None:
    found: dt.date | None = rows.agg(F.min("date")).collect()[0][0]
    return found
