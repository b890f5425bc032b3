"""What is new in bronze: which hours of which clusters must be rolled up again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import bronze_log, tables
from lakehouse import lake as lakes
from lakehouse.errors import LogExpiredError
from lakehouse.judgement import CLOCK_SLACK, IN_THE_FUTURE, SET_NOT_KNOWN
from lakehouse.periods import instant, micros
from lakehouse.units import FIRST, LAST, Pair, Versions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lakehouse.lake import Lake

ALLOWED_LATENESS: Final = dt.timedelta(days=7)
"""Where the log has gone unread, hours are recomputed from so long before the last rollup on."""

_CLOCKS: Final = dt.timedelta(days=1)
"""Clocks of agents, lake and driver differ by less."""

_HOUR_US: Final = 3_600_000_000
_DAY_US: Final = 86_400_000_000
_GONE: Final = (
    "DELETED_FILE_RETENTION_DURATION",  # the version before is older than removed files are kept
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_MISSING_CHANGE_DATA",
    "DELTA_FILE_NOT_FOUND",
    "FILE_NOT_EXIST",
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
)


@dataclass(frozen=True, slots=True)
class Touched:
    """Hours of clusters that something new touches.

    Attributes:
        rows: The number of rows that touch each.
        misdated: Hours of rows that are in another date's partition, or in no year of ours: what
            is read by date does not find them.
    """

    rows: Mapping[Pair, int]
    misdated: frozenset[Pair] = frozenset()

    @property
    def hours(self) -> tuple[dt.datetime, ...]:
        """The hours, of whatever cluster."""
        return tuple(sorted({pair.hour for pair in self.rows}))


def everything(spark: SparkSession, lake: Lake, now: Versions, since: dt.date | None) -> Touched:
    """All hours that bronze holds, from a date on (UTC)."""
    found = []
    for table, version in ((tables.RUNS, now.runs), (tables.SCRAPES, now.scrapes)):
        rows = lakes.read(spark, lake, table, version)
        found.append(rows if since is None else rows.where(F.col("date") >= F.lit(since)))
    return _collected([_hours(rows) for rows in found])


def touched(
    spark: SparkSession,
    lake: Lake,
    done: Versions,
    now: Versions,
    logs: tuple[frozenset[int], ...] = (frozenset(),) * 3,
) -> Touched:
    """The hours that inserts after ``done`` up to ``now`` touch, as the change feed tells.

    Args:
        spark: The session.
        lake: The lake.
        done: Versions that are rolled up.
        now: Versions to reach.
        logs: Versions that are known to be in the logs.

    Raises:
        LogExpiredError: A commit of these is not to be read any more.
    """
    parts = []
    for table, before, last, log in zip(bronze_log.READ, done, now, logs, strict=True):
        bronze_log.see_that_it_is_whole(spark, lake, table, range(before + 1, last + 1), log)
    try:
        for table, first, last in (
            (tables.RUNS, done.runs + 1, now.runs),
            (tables.SCRAPES, done.scrapes + 1, now.scrapes),
        ):
            rows = lakes.inserts(spark, lake, table, first, last)
            if rows is not None:
                parts.append(_hours(rows))
        sets = lakes.inserts(spark, lake, tables.MEMBERS, done.members + 1, now.members)
        if sets is not None:
            parts.append(_waiting(spark, lake, sets))
        return _collected(parts)
    except Exception as error:
        if not any(word in str(error) for word in _GONE):
            raise
        raise LogExpiredError(
            f"{lake.root}: Spark cannot read what was committed to bronze since the last rollup"
        ) from error


def recovered(spark: SparkSession, lake: Lake, last: dt.datetime, now: Versions) -> Touched:
    """The hours that commits after ``last`` may touch, where the log does not tell any more.

    Hours from ``last`` on less the allowed lateness; and whatever lies in a file written since,
    however late it came: a row that was not rolled up is in such a file, compacted or not.
    """
    parts = []
    for table, version in ((tables.RUNS, now.runs), (tables.SCRAPES, now.scrapes)):
        rows = lakes.read(spark, lake, table, version)
        late = F.col("start") >= F.lit(last - ALLOWED_LATENESS)
        written = F.col("_metadata.file_modification_time") >= F.lit(last - _CLOCKS)
        parts.append(_hours(rows.where(late | written)))
    sets = lakes.read(spark, lake, tables.MEMBERS, now.members)
    return _collected([*parts, _waiting(spark, lake, sets)])


def come_true(
    spark: SparkSession, lake: Lake, last: dt.datetime, committed: dt.datetime
) -> Touched:
    """Hours with rows that lay in the future when ``last`` was bronze's newest commit.

    At ``committed`` they do not any more.
    """
    first, latest = last + CLOCK_SLACK, committed + CLOCK_SLACK
    days = range((latest.date() - first.date()).days + 1)
    aside = lakes.read(spark, lake, tables.REJECTED).where(
        (F.col("reason") == IN_THE_FUTURE)
        & F.col("period").isin(*(f"{first.date() + dt.timedelta(days=day)}" for day in days))
        & (F.col("start") <= F.lit(latest))
    )
    return _collected([_hours(aside)])


def _hour_of(start: str) -> Column:
    """An instant's hour since 1970, no earlier and no later than hours of ours are."""
    latest = micros(LAST) // _HOUR_US
    return F.expr(f"greatest(0L, least(unix_micros(`{start}`) div {_HOUR_US}L, {latest}L))")


def is_misdated() -> Column:
    """Whether a row of bronze is in another date's partition, or in no year of ours."""
    ours = F.col("start").between(F.lit(FIRST), F.lit(LAST))
    # Spark's own to_date goes through a calendar for each row; a rollup asks this of every run.
    return F.expr(f"unix_date(date) != unix_micros(start) div {_DAY_US}L") | ~ours


def _hours(rows: DataFrame) -> DataFrame:
    misdated = is_misdated() if "date" in rows.columns else F.lit(False)  # noqa: FBT003
    return rows.where("start IS NOT NULL").select(
        "cluster", _hour_of("start").alias("hour"), misdated.alias("misdated")
    )


def _waiting(spark: SparkSession, lake: Lake, sets: DataFrame) -> DataFrame:
    """Hours with rows that were set aside because their set was not there yet."""
    aside = lakes.read(spark, lake, tables.REJECTED).where(F.col("reason") == SET_NOT_KNOWN)
    known = sets.select("cluster", F.col("set").alias("members")).distinct()
    return _hours(aside.join(known, ["cluster", "members"], "left_semi"))


def _collected(parts: list[DataFrame]) -> Touched:
    if not parts:
        return Touched({})
    found = parts[0]
    for part in parts[1:]:
        found = found.union(part)
    counted_, misdated = _counts(found)
    return Touched(counted_, misdated)


def counted(rows: DataFrame) -> Mapping[Pair, int]:
    """How many rows there are of each hour of a cluster."""
    return _counts(_hours(rows))[0]


def _counts(hours: DataFrame) -> tuple[dict[Pair, int], frozenset[Pair]]:
    found = hours.groupBy("cluster", "hour", "misdated").agg(F.count("*").alias("rows")).collect()
    by_pair: dict[bool, dict[Pair, int]] = {False: {}, True: {}}
    for row in found:
        pair = Pair(row["cluster"], instant(row["hour"] * _HOUR_US))
        by_pair[row["misdated"]][pair] = row["rows"]
    return by_pair[False], frozenset(by_pair[True])
