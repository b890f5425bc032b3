"""Position of the rollup in a bronze table, from gold/progress or from an operator.

Maintenance must not remove commits that the rollup has not read.
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
