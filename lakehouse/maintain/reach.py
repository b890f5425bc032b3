"""How far the rollup has read bronze: nothing beyond that may be cleaned away."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from deltalake.exceptions import TableNotFoundError as NoDeltaTableError

from lakehouse import tables
from lakehouse.maintain.place import explained
from lakehouse.maintain.state import Unread, commits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakehouse.maintain.place import Place
    from lakehouse.tables import Table

    Reach = Callable[[Table, DeltaTable], "int | Unread"]
    """Gives the last version of a table that was read; asked once for each table and round."""

# The rollup reads no events: a report reads all that are there.
_COLUMNS: Final = {
    "runs": "runs_version",
    "scrapes": "scrapes_version",
    "members": "members_version",
}


def by_progress(gold: str, options: Mapping[str, str]) -> Reach:
    """What gold/progress says.

    Args:
        gold: Folder or URL below which the table ``progress`` lies.
        options: Storage options of delta-rs.

    Raises:
        MaintenanceError: It is there, and cannot be read.
    """
    url = f"{gold.rstrip('/')}/{tables.PROGRESS.name}"
    with explained(url):
        found = _last_row(url, options)
    if found is None:
        return lambda _table, _delta: Unread(f"no rollup has been recorded in {url}")

    def read(table: Table, delta: DeltaTable) -> int | Unread:
        if table.name not in _COLUMNS:
            return delta.version()
        version = found[_COLUMNS[table.name]]
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


def _last_row(url: str, options: Mapping[str, str]) -> dict[str, int] | None:
    try:
        table = DeltaTable(url, storage_options=dict(options))
    except NoDeltaTableError:
        return None
    wanted = ", ".join(_COLUMNS.values())
    query = f"SELECT {wanted} FROM progress ORDER BY at DESC LIMIT 1"  # noqa: S608 - no outside text
    rows = QueryBuilder().register("progress", table).execute(query).read_all()
    if not rows.num_rows:
        return None
    return {name: rows.column(name).to_pylist()[0] for name in _COLUMNS.values()}
