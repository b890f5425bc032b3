"""gold/progress and gold/stretches: how far rollups have come, and what is done of one under way.

Progress is written last. A stretch is noted when all its commits are made; notes belong to the row
of progress they were made after, so a new row makes the old ones void.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import tables
from lakehouse.errors import TableNotFoundError
from lakehouse.periods import instant, micros
from lakehouse.units import Pair, Units, Versions

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from lakehouse.lake import Lake
    from lakehouse.tables import Table

WHOLE: Final = "whole"
FEED: Final = "feed"
RECOVERED: Final = "recovered"
SINCE: Final = "since"
TIDIED: Final = "tidied"

_HOUR_US: Final = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Progress:
    """A row of gold/progress.

    Attributes:
        at: When the rollup ended.
        window_seconds: Finest grain of gold.
        versions: Versions of bronze that are rolled up.
        hours: Hours of clusters that were recomputed.
        committed: When the newest of the versions was committed; None in rows of old.
        how: One of the words above; None in rows of old.
        late_rows: Rows that came when bronze held their hour no more.
        runs_id: Id of the Delta table bronze/runs; None in rows of old.
    """

    at: dt.datetime
    window_seconds: int
    versions: Versions
    hours: int = 0
    committed: dt.datetime | None = None
    how: str | None = None
    late_rows: int = 0
    runs_id: str | None = None


class Noted(NamedTuple):
    """A stretch that was done after the last row of progress: at which versions, and of what."""

    how: str
    versions: Versions
    pairs: frozenset[Pair]


class Last(NamedTuple):
    """How far gold is.

    Attributes:
        row: The row of progress that stands; None where there is none.
        tidied: The day (UTC) on which gold was tidied last, or begun.
    """

    row: Progress | None = None
    tidied: dt.date | None = None


def last(spark: SparkSession, lake: Lake) -> Last:
    """How far gold is; nowhere, where there is no gold/progress."""
    try:
        rows = lakes.read(spark, lake, tables.PROGRESS)
    except TableNotFoundError:
        return Last()
    instants = [name for name in ("at", "committed") if name in rows.columns]
    rows = rows.withColumns({name: F.unix_micros(name) for name in instants})
    how = F.col("how") if "how" in rows.columns else F.lit(None)
    others = [f"`{name}`" for name in rows.columns if name != "at"]
    (found,) = rows.agg(
        F.max(F.struct("at", *others)).alias("newest"),
        F.coalesce(F.max(F.when(how == TIDIED, F.col("at"))), F.min("at")).alias("tidied"),
    ).collect()
    if found["newest"] is None:
        return Last()
    return Last(_progress(found["newest"].asDict()), instant(found["tidied"]).date())


def _progress(row: dict[str, Any]) -> Progress:
    committed = row.get("committed")
    return Progress(
        instant(row["at"]),
        row["window_seconds"],
        Versions(row["runs_version"], row["scrapes_version"], row["members_version"]),
        row["hours"],
        None if committed is None else instant(committed),
        row.get("how"),
        row.get("late_rows") or 0,
        row.get("runs_id"),
    )


def record(spark: SparkSession, lake: Lake, done: Progress, before: Progress | None) -> Progress:
    """Append a row; it stands, wherever the clock of the row before was."""
    at = micros(done.at) if before is None else max(micros(done.at), micros(before.at) + 1)
    values = (
        at, done.window_seconds, *done.versions, done.hours,
        None if done.committed is None else micros(done.committed),
        done.how, done.late_rows, done.runs_id,
    )  # fmt: skip
    _append(spark, lake, tables.PROGRESS, values)
    return replace(done, at=instant(at))


def note(
    spark: SparkSession, lake: Lake, after: Progress | None, stretch: Noted, units: Units
) -> None:
    """Note that a stretch is done."""
    hours = [micros(hour) // _HOUR_US for hour in units.hours]
    values = (
        micros(dt.datetime.now(dt.UTC)), None if after is None else micros(after.at), stretch.how,
        *stretch.versions, list(units.clusters), hours,
    )  # fmt: skip
    _append(spark, lake, tables.STRETCHES, values)


def noted(spark: SparkSession, lake: Lake, after: Progress | None, how: str) -> list[Noted]:
    """Stretches of a rollup of that kind that was cut short after a row of progress."""
    since = F.lit(None if after is None else micros(after.at)).cast("bigint")
    rows = lakes.read(spark, lake, tables.STRETCHES).where(
        F.unix_micros("after").eqNullSafe(since) & (F.col("how") == how)
    )
    return [
        Noted(
            row["how"],
            Versions(row["runs_version"], row["scrapes_version"], row["members_version"]),
            Units(
                tuple(row["clusters"]), tuple(instant(hour * _HOUR_US) for hour in row["hours"])
            ).pairs,
        )
        for row in rows.collect()
    ]


def forget(spark: SparkSession, lake: Lake) -> None:
    """Remove the notes of stretches, once progress is written."""
    spark.sql(f"DELETE FROM {lake.name(tables.STRETCHES)}")  # noqa: S608 - no outside text


def _append(spark: SparkSession, lake: Lake, table: Table, values: tuple[Any, ...]) -> None:
    """Append one row; instants are microseconds."""
    # By literals: of rows, classic Spark makes tables by starting Python processes.
    row = spark.range(1).select(
        *(
            _literal(value, column.type).alias(column.name)
            for column, value in zip(table.columns, values, strict=True)
        )
    )
    lakes.append(lake, table, row)


def _literal(value: Any, type_: str) -> Column:
    if value is None:
        return F.lit(None).cast(type_)
    match type_:
        case "timestamp":
            return F.timestamp_micros(F.lit(value))
        case "array<int>":
            return F.split(F.lit(",".join(map(str, value))), ",").cast(type_)
        case "array<string>":
            return F.array(*(F.lit(one) for one in value))
    return F.lit(value).cast(type_)
