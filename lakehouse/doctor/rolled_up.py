"""How far the rollup is behind, and what it could not use."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakehouse import query, tables
from lakehouse.doctor.accounts import Source
from lakehouse.doctor.finding import Finding, Severity, counted, named, span, when
from lakehouse.errors import MaintenanceError
from lakehouse.maintain import state as states
from lakehouse.periods import instant, micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalake import DeltaTable

    from lakehouse.maintain.place import Place

_HOURLY: Final = dt.timedelta(hours=2)
_DAILY: Final = dt.timedelta(hours=26)
# Bronze's log and its removed files are kept for 30 days; Spark reads no change feed of before.
_ALMOST_EXPIRED: Final = dt.timedelta(days=25)


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest row of gold/progress.

    Attributes:
        at: When the rollup ended.
        runs_version: Version of bronze/runs that is rolled up.
        runs_id: Id of that table; None in rows of old.
        late_rows: Rows that came too late, of the rollups looked at.
    """

    at: dt.datetime
    runs_version: int
    runs_id: str | None
    late_rows: int


@dataclass(frozen=True, slots=True)
class Reach:
    """How far gold is, and how far bronze.

    Attributes:
        progress: Where gold is; None where nothing is rolled up.
        version: Newest version of bronze/runs.
        runs_id: Its id.
        unread_since: When the first commit that is not rolled up was made; None where there is
            none, or where that is no longer in the log.
    """

    progress: Progress | None
    version: int
    runs_id: str
    unread_since: dt.datetime | None = None


def reach(place: Place, runs: DeltaTable, since: dt.datetime) -> Reach:
    """How far gold is.

    Args:
        place: The lake.
        runs: bronze/runs, just loaded.
        since: From when on late rows count.

    Raises:
        LakehouseError: gold/progress is not there, or cannot be read.
    """
    url = place.url(tables.PROGRESS)
    found = progress(place.open(tables.PROGRESS), since, url)
    reached = Reach(found, runs.version(), str(runs.metadata().id))
    if found is None or found.runs_version >= runs.version():
        return reached
    first = found.runs_version + 1
    try:
        newer = states.commits(place.open(tables.RUNS, first), first, place.url(tables.RUNS))
    except MaintenanceError:
        return reached  # the log no longer holds it
    at = min((one["timestamp"] for one in newer[:1]), default=None)
    unread = None if at is None else dt.datetime.fromtimestamp(at / 1000, dt.UTC)
    return Reach(found, reached.version, reached.runs_id, unread)


def progress(delta: DeltaTable, since: dt.datetime, where: str) -> Progress | None:
    """The newest row of gold/progress.

    Raises:
        MaintenanceError: It could not be read.
    """
    names = {field.name for field in delta.schema().fields}
    runs_id = "last_value(runs_id ORDER BY at)" if "runs_id" in names else "NULL"
    late = "late_rows" if "late_rows" in names else "0"
    sql = f"""
        SELECT CAST(max(at) AS BIGINT) AS at, last_value(runs_version ORDER BY at) AS runs_version,
          {runs_id} AS runs_id,
          sum(CASE WHEN CAST(at AS BIGINT) >= {micros(since)} THEN {late} END) AS late_rows
        FROM {query.TABLE}"""  # noqa: S608 - no outside text
    (row,) = query.rows(delta, sql, where)
    if row["at"] is None:
        return None
    return Progress(instant(row["at"]), row["runs_version"], row["runs_id"], row["late_rows"] or 0)


def behind(reached: Reach, now: dt.datetime) -> list[Finding]:
    """Whether gold is behind what agents delivered."""
    told = reached.progress
    if told is None:
        return [_finding("warning", "nothing was rolled up yet", "run jmxlake rollup LAKE")]
    if told.runs_id not in (None, reached.runs_id) or told.runs_version > reached.version:
        return [
            _finding(
                "error", "it tells of another table bronze/runs than there is",
                "bronze was restored or replaced: docs/rollup.md says how gold is made anew",
            )
        ]  # fmt: skip
    if told.runs_version == reached.version:
        return []
    number = counted(reached.version - told.runs_version, "commit")
    if reached.unread_since is None:
        return [
            _finding(
                "error",
                f"{number} of bronze/runs are not rolled up, and the first is not in the log any "
                "more",
                "run jmxlake rollup LAKE: it works out anew which hours they touched",
            )
        ]
    ended = when(told.at)
    return _late(
        now - reached.unread_since, f"{number} wait for the rollup, which ended at {ended}"
    )


def _late(waiting: dt.timedelta, what: str) -> list[Finding]:
    told = f"{what}; the first for {span(waiting)}"
    if waiting > _ALMOST_EXPIRED:
        return [_finding("error", told, "run it now: what waits for 30 days can be expired")]
    if waiting > _DAILY:
        return [_finding("warning", told, "see why the rollup's job does not run, or fails")]
    if waiting > _HOURLY:
        return [_finding("info", told, "nothing, if it is meant to run once a day")]
    return []


def rejected(delta: DeltaTable, since: dt.datetime, where: str) -> list[tuple[str, int]]:
    """Why rows of bronze could not be used, and how many.

    Raises:
        MaintenanceError: The table could not be read.
    """
    sql = f"""
        SELECT reason, CAST(sum("rows") AS BIGINT) AS number FROM {query.TABLE}
        WHERE CAST("window" AS BIGINT) >= {micros(since)}
        GROUP BY reason ORDER BY number DESC"""  # noqa: S608 - no outside text
    return [(row["reason"], row["number"]) for row in query.rows(delta, sql, where)]


def unused(reasons: Sequence[tuple[str, int]], days: int) -> list[Finding]:
    """Rows that the rollup could not use."""
    return [
        Finding(
            "warning", "rejected", tables.REJECTED.path,
            f"{counted(number, 'row')} of the last {counted(days, 'day')} could not be used: "
            f"{named(reason)}",
            "look at these rows in gold/rejected: agent, batch and source stand there",
        )
        for reason, number in reasons
    ]  # fmt: skip


def late(told: Progress | None, days: int) -> list[Finding]:
    """Rows that came when bronze no longer held the rest of their hour."""
    if told is None or not told.late_rows:
        return []
    return [
        _finding(
            "warning",
            f"{counted(told.late_rows, 'row')} came too late in {counted(days, 'day')}: their "
            "hours stay as they were",
            "keep bronze longer (jmxlake maintain --keep), or let agents deliver sooner",
        )
    ]


def sources(delta: DeltaTable, where: str) -> list[tuple[Source, dt.datetime]]:
    """Sources that gold/subjects knows, and until when anything told of each.

    Raises:
        MaintenanceError: The table could not be read.
    """
    sql = f"""
        SELECT cluster, source, CAST(last_seen AS BIGINT) AS seen FROM {query.TABLE}
        WHERE kind = 'source' AND source IS NOT NULL"""  # noqa: S608 - no outside text
    return [
        (Source(row["cluster"], row["source"]), instant(row["seen"]))
        for row in query.rows(delta, sql, where)
    ]


def _finding(severity: Severity, what: str, todo: str) -> Finding:
    return Finding(severity, "rollup", tables.PROGRESS.path, what, todo)
