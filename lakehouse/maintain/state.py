"""How a bronze table stands: its version, its live files, what was done and what has been read.

What maintenance did is kept in the table itself, as app transactions: they are in every
checkpoint, survive the expiry of the log, and need no place of their own. Nothing beyond what the
rollup has read may be cleaned away.
"""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deltalake.exceptions import DeltaError

from lakehouse import tables
from lakehouse.errors import (
    ForeignEngineError,
    MaintenanceError,
    TableNotFoundError,
    TableSchemaError,
)
from lakehouse.maintain.place import ASKED, Place, explained, rows
from lakehouse.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalake import DeltaTable

    from lakehouse.maintain.place import Row

    Reach = Callable[[Table, DeltaTable], "int | Unread"]
    """Gives the last version of a table that was read; asked once for each table and round."""

CHECKED: Final = "jmxlake-maintain/checked"
"""App transaction: the version up to which commits were looked at and a checkpoint was made."""

CLEANED: Final = "jmxlake-maintain/cleaned"
"""App transaction: the day, since 1970, on which log and removed files were last cleaned up."""

_OURS: Final = "delta-rs:"
# The rollup reads no events: a report reads all that are there.
_COLUMNS: Final = {one: f"{one}_version" for one in ("runs", "scrapes", "members")}
_SPARK_NAMES: Final = {"integer": "int", "long": "bigint"}


class DataFile(NamedTuple):
    """A live data file.

    Attributes:
        date: Its partition; None in a table that has none.
        size: Bytes.
        rows: Rows in it.
        written: When it was written, by the clock of its writer.
    """

    date: dt.date | None
    size: int
    rows: int
    written: dt.datetime


class Read(NamedTuple):
    """What the rollup has read of a table.

    Attributes:
        version: The last version it has read.
        unread_since: When the version after it was committed; None where there is none, or where
            nothing is to be cleaned up today.
    """

    version: int
    unread_since: dt.datetime | None = None


class Unread(NamedTuple):
    """It is not known what the rollup has read, and why."""

    why: str


@dataclass(frozen=True, slots=True)
class TableState:
    """All that the plan of a table's maintenance rests on.

    Attributes:
        table: Which table.
        version: Its newest version.
        checked: Version of the last checkpoint of ours; -1 for none.
        cleaned: Day of the last clean-up, since 1970; -1 for none.
        files: Live files in the table's order, the newest commit first.
        read: What the rollup has read.
        unknown_engines: Commits since ``checked`` that do not say what engine wrote them.
    """

    table: Table
    version: int
    checked: int
    cleaned: int
    files: tuple[DataFile, ...]
    read: Read | Unread
    unknown_engines: int = 0

    @property
    def uncheckpointed(self) -> int:
        """Commits since the last checkpoint of ours."""
        return self.version - self.checked


def check_ours(table: Table, delta: DeltaTable, where: str) -> None:
    """See that it is the table that agents of this version write.

    Raises:
        TableSchemaError: Another schema version, or other columns.
    """
    found = delta.metadata().configuration.get("jmxlake.schema")
    if found != tables.BRONZE_VERSION:
        raise TableSchemaError(
            f"{where}: its property jmxlake.schema is {found or 'missing'}, not "
            f"{tables.BRONZE_VERSION}; it is no table of this version of jmxlake, nothing was done"
        )
    columns = {field.name: spelt(field.type) for field in delta.schema().fields}
    declared = {column.name: column.type for column in table.columns}
    differing = sorted(
        name for name in columns.keys() | declared.keys() if columns.get(name) != declared.get(name)
    )
    if differing:
        raise TableSchemaError(
            f"{where}: it has another schema (columns {', '.join(differing)}); "
            "another version or tool made it, nothing was done"
        )


def unknown_engines(delta: DeltaTable, since: int, where: str) -> int:
    """Look at the commits after a version.

    Returns:
        How many of them do not say what engine wrote them.

    Raises:
        ForeignEngineError: Another engine than delta-rs wrote one.
    """
    found = commits(delta, since + 1, where)
    for commit in found:
        engine = commit.get("engineInfo")
        if engine is not None and not str(engine).startswith(_OURS):
            raise ForeignEngineError(
                f"{where}: version {commit['version']} was written by {engine}; bronze may be "
                "written by delta-rs alone. Stop that writer and check the table, then run once "
                f"with --accept {where.rsplit('/', 1)[-1]}@{commit['version']}"
            )
    return sum(commit.get("engineInfo") is None for commit in found)


def load(
    place: Place, table: Table, delta: DeltaTable, read: int | Unread, today: int, unknown: int = 0
) -> TableState:
    """How a table stands.

    Args:
        place: The lake.
        table: Which table.
        delta: The table, just loaded.
        read: The version up to which the rollup has read it.
        today: Days since 1970.
        unknown: How many commits do not say who wrote them.

    Raises:
        MaintenanceError: The table cannot be read.
    """
    version, cleaned = delta.version(), mark(delta, CLEANED)
    seen = read if isinstance(read, Unread) else Read(read)
    if isinstance(seen, Read) and seen.version < version and cleaned < today:
        seen = _unread_since(place, table, seen)
    with explained(place.url(table)):
        files = _files(delta, dated="date" in table.partition_by)
    return TableState(table, version, mark(delta, CHECKED), cleaned, files, seen, unknown)


def mark(delta: DeltaTable, app: str) -> int:
    """What maintenance noted in the table; -1 for nothing."""
    noted = delta.transaction_version(app)
    return -1 if noted is None else noted


def _unread_since(place: Place, table: Table, seen: Read) -> Read | Unread:
    first = seen.version + 1
    try:
        found = commits(place.open(table, first), first, place.url(table))
    except MaintenanceError:
        found = []
    if not found:
        return Unread(f"version {first} is no longer in the log, and was never read")
    return seen._replace(unread_since=instant(found[0]["timestamp"]))


def commits(delta: DeltaTable, first: int, where: str) -> list[dict[str, Any]]:
    """The commits from a version on, oldest first, also those after the loaded version.

    delta-rs counts their versions down from the loaded one, though it begins with the newest.

    Raises:
        MaintenanceError: The log cannot be read.
    """
    if first > delta.version():
        return []
    with explained(where):
        found = delta.history(delta.version() - first + 1)
    return [
        {**commit, "version": version}
        for version, commit in enumerate(reversed(found), start=first)
    ]


def _files(delta: DeltaTable, *, dated: bool) -> tuple[DataFile, ...]:
    actions = delta.get_add_actions(flatten=True)
    names = ["size_bytes", "num_records", "modification_time", *(["partition.date"] * dated)]
    sizes, counts, written, *dates = (actions.column(name).to_pylist() for name in names)
    days = dates[0] if dates else [None] * len(sizes)
    return tuple(
        DataFile(day, size, count or 0, instant(at))
        for day, size, count, at in zip(days, sizes, counts, written, strict=True)
    )


def instant(milliseconds: float) -> dt.datetime:
    """An instant as delta-rs tells it, in milliseconds since the epoch."""
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)


def spelt(type_: Any) -> str:
    """A type of Delta as the declarations spell it."""
    if hasattr(type_, "element_type"):
        return f"array<{spelt(type_.element_type)}>"
    if hasattr(type_, "key_type"):
        return f"map<{spelt(type_.key_type)},{spelt(type_.value_type)}>"
    if hasattr(type_, "fields"):
        return f"struct<{','.join(f'{one.name}:{spelt(one.type)}' for one in type_.fields)}>"
    name = str(type_.type)
    return _SPARK_NAMES.get(name, name)


def by_progress(gold: str, options: Mapping[str, str]) -> Reach:
    """What gold/progress says.

    Args:
        gold: Folder or URL below which the table ``progress`` lies.
        options: Storage options of delta-rs.

    Raises:
        MaintenanceError: It is there, and cannot be read.
    """
    place = Place("", dict(options), gold)
    url = place.url(tables.PROGRESS)
    sql = f"SELECT {', '.join(_COLUMNS.values())} FROM {ASKED} ORDER BY at DESC LIMIT 1"
    found: Row | None = None
    with suppress(TableNotFoundError):
        found = next(rows(place.open(tables.PROGRESS), sql, url), None)
    if found is None:
        return lambda _table, _delta: Unread(f"no rollup has been recorded in {url}")

    def read(table: Table, delta: DeltaTable) -> int | Unread:
        if table.name not in _COLUMNS:
            return delta.version()
        version: int = found[_COLUMNS[table.name]]
        if version > delta.version():
            return Unread(f"{url} has read version {version}, and there are {delta.version()}")
        return version

    return read


def by_date(place: Place, until: dt.date | None) -> Reach:
    """What an operator vouches for: all that was committed before a date (UTC), or nothing."""
    if until is None:
        return lambda _table, _delta: Unread("--gold none, and no --read-until DATE was given")
    start = dt.datetime.combine(until, dt.time(), dt.UTC)

    def read(table: Table, _: DeltaTable) -> int | Unread:
        none = Unread(f"nothing was committed before {until}")
        older = place.open(table)
        try:
            older.load_as_version(start - dt.timedelta(milliseconds=1))
        except DeltaError:
            return none
        # Where all is newer, delta-rs gives the oldest.
        found = commits(older, older.version(), place.url(table))
        early = found and found[0]["timestamp"] < start.timestamp() * 1000
        return older.version() if early else none

    return read
