"""Findings of the rollup: its backlog, and rows that it rejected."""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import table_notes
from lakehouse.core.delta_rs import TABLE, Location, query
from lakehouse.core.periods import micros
from lakehouse.core.table_notes import Noted
from lakehouse.ops.doctor.agent_records import SourceName
from lakehouse.ops.doctor.finding import Finding, Severity, counted, finding, named, span, when
from lakehouse.ops.maintain.table_state import committed_at

# Log and removed files of bronze are kept for 30 days; Spark reads no older change feed.
_AGES: Final[tuple[tuple[dt.timedelta, Severity, str], ...]] = (
    (dt.timedelta(days=25), "error", "run it now: commits expire after 30 days"),
    (dt.timedelta(hours=26), "warning", "find why the rollup's job does not run or fails"),
    (dt.timedelta(hours=2), "info", "no action if it runs once a day"),
)
"""Severity and fix by the age of the oldest commit that is not rolled up."""


class Backlog(NamedTuple):
    """Versions of bronze/runs that gold lacks.

    Attributes:
        rolled_up: End of the newest rollup.
        unread: Versions of bronze/runs that are not rolled up. Negative: the rollup read another
            table.
        late_rows: Rows in the checked period that arrived too late.
        unread_since: Commit time of the first unread version. None if there is none or the log no
            longer contains it.
    """

    rolled_up: dt.datetime
    unread: int
    late_rows: int = 0
    unread_since: dt.datetime | None = None


def load_backlog(location: Location, runs: DeltaTable, since: dt.datetime) -> Backlog | None:
    """Return the backlog of a lake; None before the first rollup.

    Args:
        location: The lake.
        runs: bronze/runs, just loaded.
        since: Start of the period for late rows.

    Raises:
        LakehouseError: gold/progress does not exist or is unreadable.
    """
    sql = f"""
        SELECT max(finished_at) AS rolled_up,
          last_value(runs_version ORDER BY finished_at) AS version,
          last_value(runs_id ORDER BY finished_at) AS id,
          coalesce(sum(CASE WHEN CAST(finished_at AS BIGINT) >= {micros(since)}
            THEN late_rows END), 0) AS late_rows
        FROM {TABLE}"""
    (row,) = query(location.open(tables.PROGRESS), sql)
    if row["rolled_up"] is None:
        return None
    is_same = row["id"] in {None, runs.metadata().id}
    unread = runs.version() - row["version"] if is_same else -1
    first = committed_at(location, tables.RUNS, row["version"] + 1) if unread > 0 else None
    return Backlog(row["rolled_up"], unread, row["late_rows"], first)


def known_tables(location: Location) -> Mapping[str, Noted]:
    """Return gold's tables after the newest rollup; empty if it did not record them."""
    progress = location.open(tables.PROGRESS)
    if "tables" not in {field.name for field in progress.schema().fields}:
        return {}
    sql = f"SELECT tables FROM {TABLE} ORDER BY finished_at DESC LIMIT 1"
    notes = next(query(progress, sql), {}).get("tables")
    return table_notes.known_tables(notes, str(progress.metadata().id))


def behind(backlog: Backlog | None, now: dt.datetime, days: int) -> Iterator[Finding]:
    """Yield findings for unprocessed commits and late rows.

    Args:
        backlog: The backlog.
        now: The current time (UTC).
        days: Length of the period for late rows.
    """
    if backlog is None:
        yield finding("rollup", tables.PROGRESS.path, "the lake was never rolled up")
        return
    waiting = f"not rolled up: {counted(backlog.unread, 'commit')} of bronze/runs, the first "
    if backlog.unread < 0:
        what = "the rollup read another table bronze/runs"
        todo = "bronze was restored or replaced. Rebuild gold (docs/rollup.md)"
        yield finding("rollup", tables.PROGRESS.path, what, todo, "error")
    elif backlog.unread_since is not None:
        age = now - backlog.unread_since
        what = f"{waiting}for {span(age)}; the last rollup ended at {when(backlog.rolled_up)}"
        for limit, severity, todo in _AGES:
            if age > limit:
                yield finding("rollup", tables.PROGRESS.path, what, todo, severity)
                break
    elif backlog.unread:
        what, todo = f"{waiting}is no longer in the log", "run jmxlake rollup LAKE"
        yield finding("rollup", tables.PROGRESS.path, what, todo, "error")
    if backlog.late_rows:
        number = f"{counted(backlog.late_rows, 'row')} arrived too late in {counted(days, 'day')}"
        todo = "keep bronze longer (jmxlake maintain --keep), or shorten commit_interval of agents"
        what = f"{number}: their hours were not recomputed"
        yield finding("rollup", tables.PROGRESS.path, what, todo)


def rejected_dates(progress: DeltaTable, since: dt.datetime) -> set[dt.date]:
    """Return the dates of rows that rollups since an instant rejected, however old the rows are."""
    if "rejected_dates" not in {field.name for field in progress.schema().fields}:
        return set()
    sql = f"SELECT rejected_dates FROM {TABLE} WHERE CAST(finished_at AS BIGINT) >= {micros(since)}"
    texts = {text for row in query(progress, sql) for text in row["rejected_dates"] or ()}
    return set(filter(None, map(_date, texts)))


def _date(text: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:  # another program wrote it
        return None


def rejected(
    delta: DeltaTable, dates: Collection[dt.date], since: dt.datetime, days: int
) -> Iterator[Finding]:
    """Yield the rows of bronze that the rollup could not use, by reason.

    Args:
        delta: gold/rejected.
        dates: Dates of recently rejected rows; see ``rejected_dates``.
        since: Later rows count as well.
        days: Length of that period.
    """
    listed = ", ".join(f"DATE '{date}'" for date in sorted(dates))
    lately = f" OR date IN ({listed})" if listed else ""
    sql = f"""
        SELECT reason, CAST(sum(row_count) AS BIGINT) AS number FROM {TABLE}
        WHERE CAST(window_start AS BIGINT) >= {micros(since)}{lately}
        GROUP BY reason ORDER BY number DESC"""
    for row in query(delta, sql):
        number = f"{counted(row['number'], 'row')} rejected in the last {counted(days, 'day')}"
        what = f"{number} could not be used: {named(row['reason'])}"
        yield finding("rejected", tables.REJECTED.path, what)


def known_sources(subjects: DeltaTable) -> list[tuple[SourceName, dt.datetime]]:
    """Return sources in gold/subjects, with the end of their last data."""
    sql = f"""
        SELECT cluster, source, last_seen FROM {TABLE}
        WHERE kind = 'source' AND source IS NOT NULL"""
    rows = query(subjects, sql)
    return [(SourceName(row["cluster"], row["source"]), row["last_seen"]) for row in rows]
