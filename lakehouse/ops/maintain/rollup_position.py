"""How far the rollup has read a table of bronze: by gold/progress, or by an operator's word.

Nothing that the rollup has not read may be removed.
"""

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakehouse import tables
from lakehouse.core.delta_rs import Location, newest_progress
from lakehouse.ops.maintain.table_state import ReadPosition, commits

# The rollup does not read events, and a report reads all that exist.
_COLUMNS: Final = {name: f"{name}_version" for name in ("runs", "scrapes", "members")}


ReadPositions = Callable[[tables.Table, DeltaTable], ReadPosition | str]
"""Gives how far the rollup has read a table, or why that is not known."""


def by_progress(location: Location) -> ReadPositions:
    """Read positions by the newest row of gold/progress.

    Raises:
        MaintenanceError: gold/progress exists and cannot be read.
    """
    url = location.url(tables.PROGRESS)
    progress = newest_progress(location, *_COLUMNS.values())
    if progress is None:
        return lambda _table, _delta: f"no rollup has been recorded in {url}"

    def position(table: tables.Table, delta: DeltaTable) -> ReadPosition | str:
        newest = delta.version()
        version: int = progress[_COLUMNS[table.name]] if table.name in _COLUMNS else newest
        if version > newest:
            return f"{url} has read version {version}, and there are {newest}"
        return ReadPosition(version)

    return position


def by_date(location: Location, until: dt.date | None) -> ReadPositions:
    """Read positions by an operator's word: commits before a date (UTC) were read; None: none."""
    if until is None:
        return lambda _table, _delta: "--gold none without --read-until DATE"
    start = dt.datetime.combine(until, dt.time(), dt.UTC)

    def position(table: tables.Table, _: DeltaTable) -> ReadPosition | str:
        older = location.open(table)
        with suppress(DeltaError):
            older.load_as_version(start - dt.timedelta(milliseconds=1))
            # Where every commit is newer, delta-rs loads the oldest.
            oldest = commits(older, older.version())
            if oldest and oldest[0].at < start:
                return ReadPosition(older.version())
        return f"nothing was committed before {until}"

    return position
