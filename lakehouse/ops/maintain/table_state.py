"""State of a bronze table: schema, log, live files, maintenance, and the position of the rollup.

Maintenance stores its state in the table, as app transactions. Every checkpoint contains them, they
survive the expiry of the log, and they do not require other storage. It must not remove commits
that the rollup has not read. The rollup's position is in gold/progress, or an operator names it.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from deltalake import DeltaTable, Field
from deltalake.exceptions import DeltaError

from lakehouse import tables
from lakehouse.core import display
from lakehouse.core.delta_rs import Location, delta_errors, newest_progress, url_of
from lakehouse.core.periods import instant
from lakehouse.errors import ForeignEngineError, MaintenanceError, TableSchemaError
from lakehouse.tables.table import delta_type

CHECKED: Final = "jmxlake-maintain/checked"
"""App transaction: version of the last checkpoint. Commits up to it were inspected."""

CLEANED: Final = "jmxlake-maintain/cleaned"
"""App transaction: day of the last clean-up of log and removed files, since 1970."""

_COMMENT: Final = "comment"


class LogEntry(NamedTuple):
    """A commit in a table's log.

    Attributes:
        version: Version of the commit.
        at: Time on the writer's clock.
        engine: Name of the engine. None if the commit does not contain it.
        info: All fields of the commit.
    """

    version: int
    at: dt.datetime
    engine: str | None
    info: Mapping[str, Any]


class DataFile(NamedTuple):
    """A live data file.

    Attributes:
        date: Partition. None in a table without dates.
        size: Size (bytes).
        written: Time on the writer's clock.
    """

    date: dt.date | None
    size: int
    written: dt.datetime


class ReadPosition(NamedTuple):
    """The last version of a table that the rollup has read.

    Attributes:
        version: The version.
        unread_since: Commit time of the next version. None if there is none or no clean-up is due
            today.
    """

    version: int
    unread_since: dt.datetime | None = None


class TableState(NamedTuple):
    """Input of a table's maintenance plan.

    Attributes:
        uncheckpointed: Commits since the last checkpoint of maintenance.
        cleaned: Day of the last clean-up, since 1970. -1: none.
        files: Live files in the table's order, newest commit first.
        read: Position of the rollup, or why it is unknown.
        uncommented: Number of columns without a comment.
    """

    uncheckpointed: int
    cleaned: int
    files: tuple[DataFile, ...]
    read: ReadPosition | str
    uncommented: int = 0


def check_schema(table: tables.Table, delta: DeltaTable) -> None:
    """Check that a table has the schema of this version.

    Raises:
        TableSchemaError: The table has another schema version or other columns.
    """
    version = delta.metadata().configuration.get("jmxlake.schema")
    if version != tables.BRONZE_VERSION:
        raise TableSchemaError(
            f"{url_of(delta)}: property jmxlake.schema is {display.line(version or 'missing')}, "
            f"not {tables.BRONZE_VERSION}. Another version of jmxlake wrote the table, which "
            "maintenance left unchanged"
        )
    wrong = wrong_columns(table, delta)
    if wrong:
        names = display.line(", ".join(wrong))
        raise TableSchemaError(
            f"{url_of(delta)}: another schema (columns {names}). Another version or tool created "
            "the table, which maintenance left unchanged"
        )


def wrong_columns(table: tables.Table, delta: DeltaTable) -> dict[str, str]:
    """Return the differences from the declared columns, by column name."""
    present = {field.name: delta_type(field.type) for field in delta.schema().fields}
    declared = {column.name: column.type.lower() for column in table.columns}
    return {
        name: display.line(
            f"{name} is {present.get(name, 'missing')}, not {declared.get(name, 'declared')}"
        )
        for name in sorted(present.keys() | declared.keys())
        if present.get(name) != declared.get(name)
    }


def uncommented(table: tables.Table, delta: DeltaTable) -> list[Field]:
    """Return the columns without a comment, with the declared comment."""
    comments = {column.name: column.comment for column in table.columns}
    return [
        Field(
            field.name, field.type, nullable=field.nullable,
            metadata={**field.metadata, _COMMENT: comments[field.name]},
        )
        for field in delta.schema().fields
        if field.name in comments and _COMMENT not in field.metadata
    ]  # fmt: skip


def unknown_engines(delta: DeltaTable, since: int) -> int:
    """Return the number of commits after a version that do not contain their engine.

    Raises:
        ForeignEngineError: An engine other than delta-rs wrote a commit.
    """
    newer = commits(delta, since + 1)
    for commit in newer:
        if commit.engine is not None and not commit.engine.startswith("delta-rs:"):
            url = url_of(delta)
            raise ForeignEngineError(
                f"{url}: {commit.engine} wrote version {commit.version}, but only delta-rs is "
                "allowed to write bronze. Stop that writer and check the table, then run once with "
                f"--accept {url.rsplit('/', 1)[-1]}@{commit.version}"
            )
    return sum(commit.engine is None for commit in newer)


def load_state(
    location: Location, table: tables.Table, delta: DeltaTable, read: ReadPosition | str, today: int
) -> TableState:
    """Return the state of a table.

    Args:
        location: The lake.
        table: The table.
        delta: The table, just loaded.
        read: Position of the rollup.
        today: Days since 1970.

    Raises:
        MaintenanceError: The table cannot be read.
    """
    version, cleaned = delta.version(), mark(delta, CLEANED)
    if not isinstance(read, str) and read.version < version and cleaned < today:
        first = read.version + 1
        at = committed_at(location, table, first)
        gone = f"version {first} is no longer in the log, but was never read"
        read = read._replace(unread_since=at) if at else gone
    with delta_errors(url_of(delta)):
        files = _files(delta, dated="date" in table.partition_by)
    return TableState(
        version - mark(delta, CHECKED), cleaned, files, read, len(uncommented(table, delta))
    )


def mark(delta: DeltaTable, app: str) -> int:
    """Return the number of an app transaction of maintenance; -1: none."""
    noted = delta.transaction_version(app)
    return -1 if noted is None else noted


def committed_at(location: Location, table: tables.Table, version: int) -> dt.datetime | None:
    """Return the commit time of a version; None if the log no longer contains it."""
    with suppress(MaintenanceError):
        if found := commits(location.open(table, version), version):
            return found[0].at
    return None


def commits(delta: DeltaTable, first: int) -> list[LogEntry]:
    """Return the commits since a version, oldest first, including commits after the loaded version.

    delta-rs counts their versions down from the loaded version, although it starts at the newest.

    Raises:
        MaintenanceError: The log is unreadable.
    """
    if first > delta.version():
        return []
    with delta_errors(url_of(delta)):
        history = delta.history(delta.version() - first + 1)
        return [
            LogEntry(number, _committed(info), _text(info.get("engineInfo")), info)
            for number, info in enumerate(reversed(history), start=first)
        ]


def _committed(info: Mapping[str, Any]) -> dt.datetime:
    at = info.get("timestamp")
    return instant((at if isinstance(at, int) else 0) * 1000)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _files(delta: DeltaTable, *, dated: bool) -> tuple[DataFile, ...]:
    actions = delta.get_add_actions(flatten=True)
    names = ["size_bytes", "modification_time", *(["partition.date"] * dated)]
    sizes, written, *dates = (actions.column(name).to_pylist() for name in names)
    of_files = zip(dates[0] if dates else [None] * len(sizes), sizes, written, strict=True)
    return tuple(DataFile(day, size, instant(at * 1000)) for day, size, at in of_files)


# The rollup does not read events, and a report reads all events.
_COLUMNS: Final = {name: f"{name}_version" for name in ("runs", "scrapes", "members")}


ReadPositions = Callable[[tables.Table, DeltaTable], ReadPosition | str]
"""Returns the position of the rollup in a table, or why it is unknown."""


def by_progress(location: Location) -> ReadPositions:
    """Return read positions from the newest row of gold/progress.

    Raises:
        MaintenanceError: gold/progress is unreadable.
    """
    url = location.url(tables.PROGRESS)
    progress = newest_progress(location, *_COLUMNS.values())
    if progress is None:
        return lambda _table, _delta: f"no rollup has been recorded in {url}"

    def position(table: tables.Table, delta: DeltaTable) -> ReadPosition | str:
        newest = delta.version()
        version: int = progress[_COLUMNS[table.name]] if table.name in _COLUMNS else newest
        if version > newest:
            return f"{url} has read version {version}, but the newest version is {newest}"
        return ReadPosition(version)

    return position


def by_date(location: Location, until: dt.date | None) -> ReadPositions:
    """Return read positions for commits before a date (UTC); None: no commit was read."""
    if until is None:
        return lambda _table, _delta: "--gold none without --read-until DATE"
    start = dt.datetime.combine(until, dt.time(), dt.UTC)

    def position(table: tables.Table, _: DeltaTable) -> ReadPosition | str:
        older = location.open(table)
        with suppress(DeltaError):
            older.load_as_version(start - dt.timedelta(milliseconds=1))
            # If every commit is newer, delta-rs loads the oldest.
            oldest = commits(older, older.version())
            if oldest and oldest[0].at < start:
                return ReadPosition(older.version())
        return f"no commit is older than {until}"

    return position
