"""Rows that are set aside as they come, for no hour of theirs is recomputed.

They are kept in gold/rejected by batch: a batch comes once, so to write it once or again is the
same. Recomputing hours leaves these rows alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import grains, tables
from lakehouse import lake as lakes
from lakehouse.changes import is_misdated
from lakehouse.pieces import quoted
from lakehouse.units import FIRST, LAST

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping, Set

    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.lake import Lake
    from lakehouse.tables import Table
    from lakehouse.units import Pair

TOO_LATE: Final = "bronze no longer holds the rest of its hour"
MISDATED: Final = "its date is not that of its start"
BEYOND: Final = "no calendar has its start"

REASONS: Final = (TOO_LATE, MISDATED, BEYOND)
"""Reasons of rows that are set aside; a rollup of their hour says nothing of them."""

_KEYS: Final = ("cluster", "window", "reason", "table", "source", "metric", "agent", "batch")


def late(rows: DataFrame, pairs: Set[Pair]) -> DataFrame:
    """Those rows of bronze that came for some hours of clusters, with ``reason``."""
    names = [f"{pair.hour:%Y-%m-%d-%H} {pair.cluster}" for pair in pairs]
    of_row = F.concat_ws(" ", F.date_format("start", "yyyy-MM-dd-HH"), "cluster")
    return rows.where(of_row.isin(*names) & ~is_misdated()).withColumn("reason", F.lit(TOO_LATE))


def misdated(rows: DataFrame) -> DataFrame:
    """Those rows of bronze that lie in another date's partition, or in no year of ours."""
    other = F.col("date") != F.to_date("start")
    reason = F.when(other, MISDATED).otherwise(BEYOND)
    return rows.where(is_misdated()).withColumn("reason", reason)


def put(
    spark: SparkSession,
    lake: Lake,
    window_seconds: int,
    hours: Iterable[dt.datetime],
    rows: Mapping[Table, DataFrame],
) -> int:
    """Write rows with ``reason`` to gold/rejected, at the finest grain.

    Args:
        spark: The session.
        lake: The lake.
        window_seconds: Finest grain of gold.
        hours: The hours of the rows.
        rows: Rows of bronze/runs and scrapes; once or again.

    Returns:
        How many rows these are.
    """
    grain, reached = grains.name(window_seconds), sorted(set(hours))
    told = [_told(table, of_it, grain) for table, of_it in rows.items()]
    fresh = told[0] if len(told) == 1 else told[0].unionByName(told[1])
    came = fresh.groupBy(*quoted(_KEYS)).agg(
        F.min("start").alias("start"), F.max("end").alias("end"), F.count("*").alias("rows")
    )
    (row,) = came.agg(F.sum("rows").alias("rows")).collect()
    if not row["rows"]:
        return 0
    where = _where(reached, grain)
    known = lakes.read(spark, lake, tables.REJECTED).where(where).select(*came.columns)
    both = (
        came.unionByName(known)
        .groupBy(*quoted(_KEYS))
        .agg(F.min("start").alias("start"), F.max("end").alias("end"), F.max("rows").alias("rows"))
    )
    placed = both.withColumns(
        {
            "grain": F.lit(grain),
            "period": grains.period(F.col("window"), grain),
            "members": F.lit(None).cast("string"),
        }
    )
    lakes.replace(lake, tables.REJECTED, placed, where)
    return int(row["rows"])


def of_recomputed(where: str) -> str:
    """The predicate of gold/rejected's rows that a recomputed hour replaces."""
    return f"{where} AND reason NOT IN ({_reasons()})"


def _told(table: Table, rows: DataFrame, grain: str) -> DataFrame:
    what = "metric" if table is tables.RUNS else "family"
    ours = rows.withColumns(
        {
            name: F.greatest(F.lit(FIRST), F.least(F.col(name), F.lit(LAST)))
            for name in ("start", "end")
        }
    )
    return ours.select(
        "cluster", grains.start(F.col("start"), grain).alias("window"), "reason",
        F.lit(table.name).alias("table"), "source", F.col(what).alias("metric"), "agent", "batch",
        "start", "end",
    )  # fmt: skip


def _where(hours: list[dt.datetime], grain: str) -> str:
    listed = ", ".join(f"TIMESTAMP '{hour:%Y-%m-%d %H}:00:00Z'" for hour in hours)
    dates = ", ".join(f"'{date}'" for date in sorted({f"{hour.date()}" for hour in hours}))
    return (
        f"grain = '{grain}' AND period IN ({dates}) AND reason IN ({_reasons()}) "
        f"AND date_trunc('HOUR', `window`) IN ({listed})"
    )


def _reasons() -> str:
    return ", ".join(f"'{reason}'" for reason in REASONS)
