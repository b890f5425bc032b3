"""How far the rollup has read bronze: nothing beyond that may be cleaned away."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from deltalake.exceptions import DeltaError

from lakehouse import tables
from lakehouse.errors import TableNotFoundError
from lakehouse.maintain.place import ASKED, Place, rows
from lakehouse.maintain.state import Unread, commits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from deltalake import DeltaTable

    from lakehouse.maintain.place import Row
    from lakehouse.tables import Table

    Reach = Callable[[Table, DeltaTable], "int | Unread"]
    """Gives the last version of a table that was read; asked once for each table and round."""

# The rollup reads no events: a report reads all that are there.
_COLUMNS: Final = {one: f"{one}_version" for one in ("runs", "scrapes", "members")}


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
