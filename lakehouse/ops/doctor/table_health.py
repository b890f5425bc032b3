"""Findings of tables: files, commits, log, schema, protocol.

In gold also the backlog of the rollup, and rows that it rejected.
"""

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import display, table_faults, table_notes
from lakehouse.core.delta_rs import TABLE, Location, delta_errors, query, url_of
from lakehouse.core.periods import instant, iso, micros
from lakehouse.core.table_notes import Noted
from lakehouse.errors import ForeignEngineError, TableSchemaError
from lakehouse.ops.doctor.agent_records import SourceName
from lakehouse.ops.doctor.finding import (
    Finding,
    Severity,
    counted,
    finding,
    named,
    some,
    span,
    when,
)
from lakehouse.ops.maintain import table_state as states
from lakehouse.ops.maintain.plan import MOST_FILES, MOST_UNCHECKPOINTED, day_of
from lakehouse.tables import Table, delta_log

MOST_COMMITS_A_DAY: Final = 10_000
"""30 agents with the default interval of five minutes commit 8,640 times (docs/maintenance.md)."""

# At ten times the budget, an agent needs more than 10 s and 1 GB to open a table.
_FAR_BEYOND: Final = 10
# A rate requires at least an hour of commits.
_LEAST_TIME: Final = dt.timedelta(hours=1)
_WRITABLE: Final = frozenset({"changeDataFeed", "appendOnly", "invariants", "checkConstraints"})
"""Writer features that agents, maintenance and the rollup support."""


class TableHealth(NamedTuple):
    """Health of a table from its log, as described in docs/operations.md.

    Attributes:
        table: Layer and name of the table.
        version: Newest version.
        live_files: Number of live files.
        bytes: Size of the live files.
        uncheckpointed: Commits since the last checkpoint of maintenance. None for gold.
        commits_a_day: Rate of the newest commits. None for too few commits and for gold.
        reader_version: Minimum Delta reader version.
        writer_version: Minimum Delta writer version.
    """

    table: str
    version: int
    live_files: int
    bytes: int
    uncheckpointed: int | None
    commits_a_day: int | None
    reader_version: int
    writer_version: int


def table_health(table: Table, delta: DeltaTable, a_day: int | None = None) -> TableHealth:
    """Return the health of a table from its log."""
    with delta_errors(url_of(delta)):
        sizes, protocol = delta.get_add_actions().column("size_bytes").to_pylist(), delta.protocol()
    checked = states.mark(delta, states.CHECKED)
    unread = delta.version() - checked if table.layer == "bronze" else None
    figures = (delta.version(), len(sizes), sum(sizes), unread, a_day)
    return TableHealth(
        table.path, *figures, protocol.min_reader_version, protocol.min_writer_version
    )


def bronze_shape(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Yield findings for a bronze table that agents cannot write or that other engines wrote."""
    url = url_of(delta)
    wrong = states.wrong_columns(table, delta)
    if wrong and not wrong.keys() & {*table.column_names}:
        todo = (
            "find the tool that added them, then restore the previous version (Delta's RESTORE). "
            "Until then agents cannot deliver to the table, and maintenance skips it"
        )
        yield from unknown_columns(table, delta, todo, "error")
    else:
        try:
            states.check_schema(table, delta)
        except TableSchemaError as error:
            yield finding("schema", table.path, str(error).removeprefix(f"{url}: "))
    features = set(delta.protocol().writer_features or ()) - _WRITABLE
    if features:
        what = f"it requires Delta features that agents do not enable: {some(sorted(features))}"
        yield finding("protocol", table.path, what)
    try:
        states.unknown_engines(delta, states.mark(delta, states.CHECKED))
    except ForeignEngineError as error:
        yield finding("engine", table.path, str(error).removeprefix(f"{url}: "))


def unknown_columns(
    table: Table, delta: DeltaTable, todo: str = "", severity: Severity | None = None
) -> Iterator[Finding]:
    """Yield a finding for columns that this version does not declare."""
    names = table.undeclared(field.name for field in delta.schema().fields)
    if names:
        number = counted(len(names), "column")
        what = f"{number} that this version does not declare: {some(names)}"
        yield finding("unknown_columns", table.path, what, todo, severity)


def gold_shape(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Yield findings for wrong columns of a gold table, and for engines that cannot read it."""
    declared = {column.name for column in table.columns}
    wrong = [text for name, text in states.wrong_columns(table, delta).items() if name in declared]
    if wrong:
        more = f" and {counted(len(wrong) - 3, 'other')}" if len(wrong) > 3 else ""
        todo = (
            "run jmxlake rollup, which adds columns. If a type differs, find what created the table"
        )
        yield finding("schema", table.path, f"{'; '.join(wrong[:3])}{more}", todo, "warning")
    yield from unknown_columns(table, delta)
    protocol = delta.protocol()
    features = sorted(protocol.reader_features or ())
    if protocol.min_reader_version > 1 or features:
        needs = f"{protocol.min_reader_version} {named(', '.join(features))}"
        what = f"some engines cannot read it: it requires reader version {needs}"
        todo = "find the engine that upgraded it. Gold tables of jmxlake require reader version 1"
        yield finding("protocol", table.path, what, todo)


def over_budget(health: TableHealth) -> Iterator[Finding]:
    """Yield findings for files, commits without a checkpoint and commit rates above limits."""
    path, unread = health.table, health.uncheckpointed
    todo = "run jmxlake rollup --tidy now" if unread is None else ""
    if severity := _severity(health.live_files, MOST_FILES):
        what = f"{health.live_files:,} live files, more than {MOST_FILES:,}"
        yield finding("files", path, what, todo, severity)
    if unread is not None and (severity := _severity(unread, MOST_UNCHECKPOINTED)):
        what = f"{unread:,} commits without a checkpoint, more than {MOST_UNCHECKPOINTED}"
        yield finding("uncheckpointed", path, f"{what}: every reader must read them", "", severity)
    if (health.commits_a_day or 0) > MOST_COMMITS_A_DAY:
        what = (
            f"{health.commits_a_day:,} commits per day, so a log of 30 days has large checkpoints"
        )
        yield finding("log_growth", path, what)


def _severity(number: int, most: int) -> Severity | None:
    if number <= most:
        return None
    return "error" if number > _FAR_BEYOND * most else "warning"


def not_cleaned(
    table: Table, cleaned: int, now: dt.datetime, age: dt.timedelta, unknown: str | None
) -> Iterator[Finding]:
    """Yield a finding if log and removed files of a bronze table are not cleaned up.

    Args:
        table: The table.
        cleaned: Day of its last clean-up, since 1970. -1: none.
        now: The current time (UTC).
        age: Age of the table.
        unknown: Why the position of the rollup is unknown. None if it is known.
    """
    days = day_of(now) - cleaned
    if age > dt.timedelta(days=31) and (cleaned < 0 or days > 3):
        since = "never cleaned up" if cleaned < 0 else f"not cleaned up for {counted(days, 'day')}"
        reason = "" if unknown is None else f": {named(unknown)}"
        what = f"its log and removed files were {since}, and grow{reason}"
        yield finding("log", table.path, what)


def commits_a_day(instants: Sequence[dt.datetime]) -> int | None:
    """Return the commit rate from the times of the newest commits; None if they are too few."""
    if len(instants) < 2 or max(instants) - min(instants) < _LEAST_TIME:
        return None
    return round((len(instants) - 1) * dt.timedelta(days=1) / (max(instants) - min(instants)))


def age(delta: DeltaTable, now: dt.datetime) -> dt.timedelta:
    """Return the age of a table; zero if its creation time is missing."""
    created: Any = delta.metadata().created_time
    return dt.timedelta() if created is None else now - instant(created * 1000)


def missing(table: Table) -> Finding:
    """Return a finding for a missing table."""
    what = "the table does not exist"
    if table.layer == "bronze":
        return finding("missing", table.path, what)
    todo = "run jmxlake rollup LAKE, which recomputes all hours in bronze. Other time is unknown"
    if table is tables.SLA:
        todo = "restore it from a backup, because the rollup cannot recreate published SLO results"
    return finding("missing", table.path, what, todo, "warning")


def files_gone(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Yield a finding for files in a table's log that the store does not have, with one listing."""
    with delta_errors(url_of(delta)):
        files = table_faults.missing_files(delta)
    if files:
        what, todo = table_faults.what(files), table_faults.todo(table, files)
        yield finding("files_gone", table.path, what, todo)


def files_damaged(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Yield a finding for files in a folder that have another size than in the table's log."""
    folder = delta_log.table_folder(url_of(delta))
    with delta_errors(url_of(delta)):
        files = table_faults.damaged_files(delta, folder) if folder else []
    if files:
        paths = some([one.path for one in files])
        what = f"{table_faults.what(files, 'damaged')}: {paths}"
        todo = f"restore them from a backup, or delete them and {table_faults.todo(table, files)}"
        yield finding("files_damaged", table.path, what, "" if table.layer == "bronze" else todo)


def damaged_log(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Yield a finding for empty commit files, which delta-rs reads as no rows."""
    versions = delta_log.empty_commits(url_of(delta))
    if versions:
        which = some([str(version) for version in versions])
        yield finding("damaged_log", table.path, f"the commit file of version {which} is empty")


def incomplete(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Yield a finding for intervals in which a gold table records missing rows."""
    properties = delta.metadata().configuration
    found = table_notes.gaps(properties)
    if not found:
        return
    start, end = min(gap.start for gap in found), max(gap.end for gap in found)
    reason = display.line(found[0].reason, 200)
    what = f"rows are missing for hours from {iso(start)} to {iso(end)}: {reason}"
    if table_notes.is_due(properties):
        todo = "run jmxlake rollup LAKE, which recomputes all hours in bronze"
        yield finding("incomplete", table.path, what, todo, "warning")
    else:
        yield finding("incomplete", table.path, what)


def replaced(table: Table, delta: DeltaTable, known: Mapping[str, Noted]) -> Iterator[Finding]:
    """Yield a finding if the last rollup wrote another version or copy of a gold table.

    Args:
        table: The table.
        delta: The open table.
        known: The tables after that rollup. Empty: it did not record them.
    """
    before = known.get(table.name)
    if before is None or table_notes.is_due(delta.metadata().configuration):
        return
    if before.id != str(delta.metadata().id):
        yield finding("replaced", table.path, "the last rollup wrote another table")
    elif before.version is not None and delta.version() < before.version:
        what = f"an older copy: version {delta.version()}, but the rollup wrote {before.version}"
        yield finding("replaced", table.path, what)


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
    first = states.committed_at(location, tables.RUNS, row["version"] + 1) if unread > 0 else None
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
