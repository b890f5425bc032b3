"""Findings of tables: files, commits, log, schema, protocol."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core import display, missing_files, table_notes
from lakehouse.core.delta_rs import delta_errors, url_of
from lakehouse.core.periods import instant, iso
from lakehouse.core.table_notes import Noted
from lakehouse.errors import ForeignEngineError, TableSchemaError
from lakehouse.ops.doctor.finding import Finding, Severity, counted, finding, named, some
from lakehouse.ops.maintain import table_state as states
from lakehouse.ops.maintain.plan import MOST_FILES, MOST_UNCHECKPOINTED, day_of
from lakehouse.tables import Table, delta_log

MOST_COMMITS_A_DAY: Final = 10_000
"""30 agents with the default interval of five minutes make 8,640 (docs/maintenance.md)."""

# At ten times the budget an agent needs more than 10 s and a gigabyte to open a table.
_FAR_BEYOND: Final = 10
# Commits of a shorter time are too few for a rate.
_LEAST_TIME: Final = dt.timedelta(hours=1)
_WRITABLE: Final = frozenset({"changeDataFeed", "appendOnly", "invariants", "checkConstraints"})
"""Writer features that agents, maintenance and the rollup support."""


class TableHealth(NamedTuple):
    """A table by its log, as docs/doctor.md describes it.

    Attributes:
        table: Layer and name of the table.
        version: Its newest version.
        live_files: Number of its live files.
        bytes: Their size.
        uncheckpointed: Commits since the maintenance's last checkpoint; None of gold.
        commits_a_day: Rate of the newest commits; None where there are too few, and of gold.
        reader_version: Least version of Delta that a reader needs.
        writer_version: The same of a writer.
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
    """Health of a table, by its log alone."""
    with delta_errors(url_of(delta)):
        sizes, protocol = delta.get_add_actions().column("size_bytes").to_pylist(), delta.protocol()
    checked = states.mark(delta, states.CHECKED)
    unread = delta.version() - checked if table.layer == "bronze" else None
    figures = (delta.version(), len(sizes), sum(sizes), unread, a_day)
    return TableHealth(
        table.path, *figures, protocol.min_reader_version, protocol.min_writer_version
    )


def bronze_shape(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Whether agents of this version can write a table of bronze, and whether others wrote it."""
    url = url_of(delta)
    wrong = states.wrong_columns(table, delta)
    if wrong and not wrong.keys() & {*table.column_names}:
        todo = (
            "find what added them, then restore the version before (Delta's RESTORE); until then "
            "agents cannot deliver to the table, and maintenance leaves it as it is"
        )
        yield from unknown_columns(table, delta, todo, "error")
    else:
        try:
            states.check_schema(table, delta)
        except TableSchemaError as error:
            yield finding("schema", table.path, str(error).removeprefix(f"{url}: "))
    features = set(delta.protocol().writer_features or ()) - _WRITABLE
    if features:
        what = f"it needs Delta features that no agent turns on: {some(sorted(features))}"
        yield finding("protocol", table.path, what)
    try:
        states.unknown_engines(delta, states.mark(delta, states.CHECKED))
    except ForeignEngineError as error:
        yield finding("engine", table.path, str(error).removeprefix(f"{url}: "))


def unknown_columns(
    table: Table, delta: DeltaTable, todo: str = "", severity: Severity | None = None
) -> Iterator[Finding]:
    """Whether a table has columns that this version does not declare."""
    names = table.undeclared(field.name for field in delta.schema().fields)
    if names:
        number = counted(len(names), "column")
        what = f"{number} that this version does not declare: {some(names)}"
        yield finding("unknown_columns", table.path, what, todo, severity)


def gold_shape(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Whether a table of gold has the declared columns, and whether any engine can read it."""
    declared = {column.name for column in table.columns}
    wrong = [text for name, text in states.wrong_columns(table, delta).items() if name in declared]
    if wrong:
        more = f" and {counted(len(wrong) - 3, 'other')}" if len(wrong) > 3 else ""
        todo = "run jmxlake rollup: it adds columns; if a type differs, find what made the table"
        yield finding("schema", table.path, f"{'; '.join(wrong[:3])}{more}", todo, "warning")
    yield from unknown_columns(table, delta)
    protocol = delta.protocol()
    features = sorted(protocol.reader_features or ())
    if protocol.min_reader_version > 1 or features:
        needs = f"{protocol.min_reader_version} {named(', '.join(features))}"
        what = f"not every engine can read it: it needs reader version {needs}"
        todo = "find which engine upgraded it; jmxlake's own tables of gold need reader version 1"
        yield finding("protocol", table.path, what, todo)


def over_budget(health: TableHealth) -> Iterator[Finding]:
    """Files, commits without a checkpoint, and commits a day above their limits."""
    path, unread = health.table, health.uncheckpointed
    todo = "run jmxlake rollup --tidy now" if unread is None else ""
    if severity := _severity(health.live_files, MOST_FILES):
        what = f"{health.live_files:,} live files, more than {MOST_FILES:,}"
        yield finding("files", path, what, todo, severity)
    if unread is not None and (severity := _severity(unread, MOST_UNCHECKPOINTED)):
        what = f"{unread:,} commits without a checkpoint, more than {MOST_UNCHECKPOINTED}"
        yield finding("uncheckpointed", path, f"{what}: every reader reads them all", "", severity)
    if (health.commits_a_day or 0) > MOST_COMMITS_A_DAY:
        what = f"{health.commits_a_day:,} commits a day: a log of 30 days has large checkpoints"
        yield finding("log_growth", path, what)


def _severity(number: int, most: int) -> Severity | None:
    if number <= most:
        return None
    return "error" if number > _FAR_BEYOND * most else "warning"


def not_cleaned(
    table: Table, cleaned: int, now: dt.datetime, age: dt.timedelta, unknown: str | None
) -> Iterator[Finding]:
    """Whether log and removed files of a table of bronze are cleaned up.

    Args:
        table: The table.
        cleaned: Day of its last clean-up, since 1970; -1: none.
        now: The instant, UTC.
        age: Time since the table was created.
        unknown: Why it is not known how far the rollup has read; None where it is known.
    """
    days = day_of(now) - cleaned
    if age > dt.timedelta(days=31) and (cleaned < 0 or days > 3):
        since = "were never" if cleaned < 0 else f"were for {counted(days, 'day')} not"
        reason = "" if unknown is None else f": {named(unknown)}"
        what = f"its log and removed files {since} cleaned up, and grow{reason}"
        yield finding("log", table.path, what)


def commits_a_day(instants: Sequence[dt.datetime]) -> int | None:
    """Rate of commits, by the instants of the newest; None where they are too few."""
    if len(instants) < 2 or max(instants) - min(instants) < _LEAST_TIME:
        return None
    return round((len(instants) - 1) * dt.timedelta(days=1) / (max(instants) - min(instants)))


def age(delta: DeltaTable, now: dt.datetime) -> dt.timedelta:
    """Time since a table was created; zero where it does not say."""
    created: Any = delta.metadata().created_time
    return dt.timedelta() if created is None else now - instant(created * 1000)


def missing(table: Table) -> Finding:
    """A table that should exist."""
    what = "there is no such table"
    if table.layer == "bronze":
        return finding("missing", table.path, what)
    todo = "run jmxlake rollup LAKE: it recomputes what bronze still has; other time stays unknown"
    if table is tables.SLA:
        todo = "restore it from a backup: the rollup creates it without its published statements"
    return finding("missing", table.path, what, todo, "warning")


def files_gone(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Whether the store has all files that a table's log names, by one listing."""
    with delta_errors(url_of(delta)):
        files = missing_files.missing_files(delta)
    if files:
        what, todo = missing_files.what(files), missing_files.todo(table, files)
        yield finding("files_gone", table.path, what, todo)


def damaged_log(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """Return a finding for commit files that are empty: delta-rs reads them as no rows."""
    versions = delta_log.empty_commits(url_of(delta))
    if versions:
        which = some([str(version) for version in versions])
        yield finding("damaged_log", table.path, f"the commit file of version {which} is empty")


def incomplete(table: Table, delta: DeltaTable) -> Iterator[Finding]:
    """The time in which a table of gold may lack rows, as it notes itself."""
    properties = delta.metadata().configuration
    found = table_notes.gaps(properties)
    if not found:
        return
    start, end = min(gap.start for gap in found), max(gap.end for gap in found)
    reason = display.line(found[0].reason, 200)
    what = f"it lacks rows of hours from {iso(start)} to {iso(end)}: {reason}"
    if table_notes.is_due(properties):
        todo = "run jmxlake rollup LAKE: it recomputes what bronze still has"
        yield finding("incomplete", table.path, what, todo, "warning")
    else:
        yield finding("incomplete", table.path, what)


def replaced(table: Table, delta: DeltaTable, known: Mapping[str, Noted]) -> Iterator[Finding]:
    """Whether a table of gold is the one that the last rollup wrote.

    Args:
        table: The table.
        delta: The same, open.
        known: The tables after that rollup; empty: it did not note them.
    """
    before = known.get(table.name)
    if before is None or table_notes.is_due(delta.metadata().configuration):
        return
    if before.id != str(delta.metadata().id):
        yield finding("replaced", table.path, "it is another table than the last rollup wrote")
    elif before.version is not None and delta.version() < before.version:
        what = f"it is an older copy: version {delta.version()}, the rollup wrote {before.version}"
        yield finding("replaced", table.path, what)
