"""Hours that bronze no longer holds wholly: retention has been there, in one table or in all.

Bronze only grows, but for retention. So where gold has seen what bronze does not hold any more,
rows were removed, and recomputing the hour would replace figures by emptiness. Such an hour stays
as it is in gold; what comes for it later is set aside (see ``aside``).
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, tables
from lakehouse import lake as lakes
from lakehouse.periods import instant
from lakehouse.pieces import quoted
from lakehouse.units import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.lake import Lake
    from lakehouse.units import Versions

LEAST_KEPT: Final = dt.timedelta(days=1)
"""Maintenance removes nothing that is younger."""

_RULES: Final = (
    # What gold has seen of a table of bronze, and by which of its columns.
    (tables.COVERAGE, tables.SCRAPES, ("cluster", "source", "family")),
    (tables.BROKERS, tables.RUNS, ("cluster", "source", "metric")),
)


def lost(
    spark: SparkSession,
    lake: Lake,
    versions: Versions,
    window_seconds: int,
    hours: Iterable[dt.datetime],
) -> frozenset[Pair]:
    """Hours of clusters of which gold has seen more than bronze holds.

    Args:
        spark: The session.
        lake: The lake; gold's tables are there.
        versions: Versions of bronze.
        window_seconds: Finest grain of gold.
        hours: The hours to look at, of all clusters.
    """
    wanted = sorted(hours)
    if not wanted:
        return frozenset()
    grain = grains.name(window_seconds)
    at = {tables.SCRAPES.name: versions.scrapes, tables.RUNS.name: versions.runs}
    found: set[Pair] = set()
    for of_gold, of_bronze, keys in _RULES:
        seen = _in_hours(lakes.read(spark, lake, of_gold).where(F.col("grain") == grain), wanted)
        if not seen.limit(1).collect():
            continue
        dates = sorted({hour.date() for hour in wanted})
        rows = lakes.read(spark, lake, of_bronze, at[of_bronze.name])
        there = rows.where(F.col("date").isin(*dates)).withColumn(
            "window", grains.start(F.col("start"), grain)
        )
        both = [*quoted(keys), "window"]
        gone = seen.select(*both).join(
            there.select(*both).distinct(), [*keys, "window"], "left_anti"
        )
        found |= _pairs(gone)
    return frozenset(found)


def _in_hours(rows: DataFrame, hours: list[dt.datetime]) -> DataFrame:
    dates = sorted({f"{hour.date()}" for hour in hours})
    inside = (F.col("window") >= F.lit(hours[0])) & (
        F.col("window") < F.lit(hours[-1] + dt.timedelta(hours=1))
    )
    rows = rows.where(F.col("period").isin(*dates) & inside)
    return rows.where(F.date_trunc("hour", "window").isin(*hours))


def _pairs(rows: DataFrame) -> set[Pair]:
    hour = F.floor(F.unix_seconds("window") / 3600)
    found = rows.select("cluster", hour.alias("hour")).distinct().collect()
    return {Pair(row["cluster"], instant(row["hour"] * 3_600_000_000)) for row in found}
