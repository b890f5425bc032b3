"""How far the rollup is behind, and what it could not use."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import tables
from lakehouse.doctor.accounts import Source
from lakehouse.doctor.finding import Finding, Severity, counted, named, span, when
from lakehouse.errors import MaintenanceError
from lakehouse.maintain import state as states
from lakehouse.maintain.place import ASKED, rows
from lakehouse.periods import micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from deltalake import DeltaTable

    from lakehouse.doctor.accounts import Ask
    from lakehouse.maintain.place import Place

_HOURLY: Final = dt.timedelta(hours=2)
_DAILY: Final = dt.timedelta(hours=26)
# Bronze's log and its removed files are kept for 30 days; Spark reads no change feed of before.
_ALMOST_EXPIRED: Final = dt.timedelta(days=25)


class Progress(NamedTuple):
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


class Reach(NamedTuple):
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
    found = _progress(place.open(tables.PROGRESS), since, place.url(tables.PROGRESS))
    reached = Reach(found, runs.version(), str(runs.metadata().id))
    if found is None or found.runs_version >= runs.version():
        return reached
    first = found.runs_version + 1
    try:
        newer = states.commits(place.open(tables.RUNS, first), first, place.url(tables.RUNS))
    except MaintenanceError:
        return reached  # the log no longer holds it
    return reached._replace(unread_since=states.instant(newer[0]["timestamp"]) if newer else None)


def _progress(delta: DeltaTable, since: dt.datetime, where: str) -> Progress | None:
    """The newest row of gold/progress."""
    names = {field.name for field in delta.schema().fields}
    runs_id = "last_value(runs_id ORDER BY at)" if "runs_id" in names else "NULL"
    late = "late_rows" if "late_rows" in names else "0"
    sql = f"""
        SELECT max(at) AS at, last_value(runs_version ORDER BY at) AS runs_version,
          {runs_id} AS runs_id, coalesce(
            sum(CASE WHEN CAST(at AS BIGINT) >= {micros(since)} THEN {late} END), 0) AS late_rows
        FROM {ASKED}"""
    (row,) = rows(delta, sql, where)
    return None if row["at"] is None else Progress(**row)


def behind(reached: Reach, now: dt.datetime) -> Iterator[Finding]:
    """Whether gold is behind what agents delivered."""
    told = reached.progress
    if told is None:
        yield _finding("warning", "nothing was rolled up yet", "run jmxlake rollup LAKE")
    elif told.runs_id not in (None, reached.runs_id) or told.runs_version > reached.version:
        yield _finding(
            "error", "it tells of another table bronze/runs than there is",
            "bronze was restored or replaced: docs/rollup.md says how gold is made anew",
        )  # fmt: skip
    elif told.runs_version < reached.version:
        number = counted(reached.version - told.runs_version, "commit")
        if reached.unread_since is None:
            yield _finding(
                "error",
                f"{number} of bronze/runs are not rolled up, and the first is not in the log any "
                "more",
                "run jmxlake rollup LAKE: it works out anew which hours they touched",
            )
            return
        waiting = now - reached.unread_since
        what = f"{number} wait for the rollup, which ended at {when(told.at)}; the first for "
        what += span(waiting)
        if waiting > _ALMOST_EXPIRED:
            yield _finding("error", what, "run it now: what waits for 30 days can be expired")
        elif waiting > _DAILY:
            yield _finding("warning", what, "see why the rollup's job does not run, or fails")
        elif waiting > _HOURLY:
            yield _finding("info", what, "nothing, if it is meant to run once a day")


def rejected(ask: Ask, since: dt.datetime) -> list[tuple[str, int]]:
    """Why rows of bronze could not be used, and how many."""
    sql = f"""
        SELECT reason, CAST(sum("rows") AS BIGINT) AS number FROM {ASKED}
        WHERE CAST("window" AS BIGINT) >= {micros(since)}
        GROUP BY reason ORDER BY number DESC"""
    return [(row["reason"], row["number"]) for row in ask(sql)]


def unused(reasons: Sequence[tuple[str, int]], days: int) -> Iterator[Finding]:
    """Rows that the rollup could not use."""
    for reason, number in reasons:
        yield Finding(
            "warning", "rejected", tables.REJECTED.path,
            f"{counted(number, 'row')} of the last {counted(days, 'day')} could not be used: "
            f"{named(reason)}",
            "look at these rows in gold/rejected: agent, batch and source stand there",
        )  # fmt: skip


def late(told: Progress | None, days: int) -> Iterator[Finding]:
    """Rows that came when bronze no longer held the rest of their hour."""
    if told is not None and told.late_rows:
        yield _finding(
            "warning",
            f"{counted(told.late_rows, 'row')} came too late in {counted(days, 'day')}: their "
            "hours stay as they were",
            "keep bronze longer (jmxlake maintain --keep), or let agents deliver sooner",
        )


def sources(ask: Ask) -> list[tuple[Source, dt.datetime]]:
    """Sources that gold/subjects knows, and until when anything told of each."""
    sql = f"""
        SELECT cluster, source, last_seen FROM {ASKED}
        WHERE kind = 'source' AND source IS NOT NULL"""
    return [(Source(row["cluster"], row["source"]), row["last_seen"]) for row in ask(sql)]


def _finding(severity: Severity, what: str, todo: str) -> Finding:
    return Finding(severity, "rollup", tables.PROGRESS.path, what, todo)
