"""What is new in bronze: which hours of which clusters must be rolled up again."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import tables
from lakehouse.rejected import SET_NOT_KNOWN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.lake import Lake, Version


class Versions(NamedTuple):
    """Versions of bronze that are read together."""

    runs: int
    scrapes: int
    members: int


@dataclass(frozen=True, slots=True)
class Units:
    """Hours of clusters that something new touches.

    Every hour is recomputed for every cluster named here: rarely more than needed, and the
    predicates stay two plain lists.
    """

    clusters: tuple[str, ...]
    hours: tuple[dt.datetime, ...]

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.clusters)

    @property
    def dates(self) -> tuple[dt.date, ...]:
        """The days of the hours."""
        return tuple(sorted({hour.date() for hour in self.hours}))

    @property
    def mondays(self) -> tuple[dt.date, ...]:
        """The first days of the hours' ISO weeks."""
        return tuple(sorted({date - dt.timedelta(days=date.weekday()) for date in self.dates}))


def current(spark: SparkSession, lake: Lake) -> tuple[Versions, Version]:
    """The newest versions of bronze, and when the newest of runs was committed."""
    runs, scrapes, members = (
        lakes.latest(spark, lake, table) for table in (tables.RUNS, tables.SCRAPES, tables.MEMBERS)
    )
    newest = max(runs, scrapes, key=lambda version: version.committed)
    return Versions(runs.number, scrapes.number, members.number), newest


def touched(spark: SparkSession, lake: Lake, done: Versions | None, now: Versions) -> Units:
    """The hours that inserts after ``done`` up to ``now`` touch; without ``done``, all hours."""
    if done is None:
        parts = [
            _hours(lakes.read(spark, lake, table, version))
            for table, version in ((tables.RUNS, now.runs), (tables.SCRAPES, now.scrapes))
        ]
    else:
        parts = [
            _hours(rows)
            for table, first, last in (
                (tables.RUNS, done.runs + 1, now.runs),
                (tables.SCRAPES, done.scrapes + 1, now.scrapes),
            )
            if (rows := lakes.inserts(spark, lake, table, first, last)) is not None
        ]
        sets = lakes.inserts(spark, lake, tables.MEMBERS, done.members + 1, now.members)
        if sets is not None:
            parts.append(_waiting(spark, lake, sets))
    if not parts:
        return Units((), ())
    found = parts[0]
    for part in parts[1:]:
        found = found.union(part)
    units = found.distinct().collect()
    hours = sorted({_utc(unit["hour"]) for unit in units})
    return Units(tuple(sorted({unit["cluster"] for unit in units})), tuple(hours))


def _hours(rows: DataFrame) -> DataFrame:
    hour = F.date_format(F.date_trunc("hour", "start"), "yyyy-MM-dd HH")
    return rows.where("start IS NOT NULL").select("cluster", hour.alias("hour"))


def _waiting(spark: SparkSession, lake: Lake, sets: DataFrame) -> DataFrame:
    """Hours with rows that were set aside because their set was not there yet."""
    aside = lakes.read(spark, lake, tables.REJECTED).where(F.col("reason") == SET_NOT_KNOWN)
    known = sets.select("cluster", F.col("set").alias("members")).distinct()
    return _hours(aside.join(known, ["cluster", "members"], "left_semi"))


def _utc(hour: str) -> dt.datetime:
    return dt.datetime.strptime(hour, "%Y-%m-%d %H").replace(tzinfo=dt.UTC)
