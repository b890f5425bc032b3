"""Which checkpoints are kept, and for how long.

A checkpoint names every file that was removed in the last 30 days, so each is large, and all of
them for 30 days are far larger than the data. Readers of the newest version need the newest one;
who travels in time reads the one before and replays commits from there: hourly ones let a rollup
do so quickly for a day, daily ones let anybody for as long as there is a log. Three of the newest,
since who has just opened a table reads its checkpoint a little later.

So every checkpoint gets a slot, and pushes out the one that was there. Slots are app transactions:
the commit that notes a checkpoint says what is in its slot now, and that is all that is ever
deleted. The first checkpoint of a day has no slot: it goes with the log.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

# Private, and only what delta-rs gives pyarrow to read and write by: it has no public call to read
# or to delete one of the log's files. The alternative is an object store of our own, which would
# spell and default the storage options otherwise than the agents'. deltalake is pinned to one
# version, and tests do this in a folder and on S3.
from deltalake._internal import DeltaFileSystemHandler

from lakehouse.errors import MaintenanceConflictError

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from lakehouse.maintain.place import Place
    from lakehouse.tables import Table

_LAST_CHECKPOINT: Final = "_delta_log/_last_checkpoint"

LAST_HOUR: Final = "jmxlake-maintain/checkpoint/last-hour"
"""App transaction: the hour, since 1970, in which the last checkpoint was made."""

NEWEST: Final = tuple(f"jmxlake-maintain/checkpoint/newest-{number}" for number in range(3))
"""App transactions: versions of the newest checkpoints that are no hour's first."""

HOURS: Final = tuple(f"jmxlake-maintain/checkpoint/hour-{hour:02}" for hour in range(24))
"""App transactions: versions of the first checkpoints of the last day's hours."""


class Slot(NamedTuple):
    """Where a checkpoint belongs.

    Attributes:
        marks: App transactions that say so.
        superseded: Version of the checkpoint that it pushes out; -1 for none.
    """

    marks: dict[str, int]
    superseded: int = -1


def slot(version: int, at: dt.datetime, mark: Callable[[str], int]) -> Slot:
    """Where a new checkpoint belongs.

    Args:
        version: Its version.
        at: When it was made, UTC.
        mark: Gives what an app transaction says; -1 for nothing.
    """
    hour, last = int(at.timestamp()) // 3600, mark(LAST_HOUR)
    seen = {LAST_HOUR: hour}
    # A clock that was set back begins a new hour as well: to wait for the old one would take long.
    if hour // 24 != last // 24:
        return Slot(seen)
    app = HOURS[hour % 24] if hour != last else min(NEWEST, key=mark)
    return Slot({**seen, app: version}, mark(app))


def supersede(place: Place, table: Table, version: int, by: int) -> None:
    """Delete a classic checkpoint of one file; one that is gone already is no error.

    Args:
        place: The lake.
        table: Which table.
        version: Version of the checkpoint.
        by: Version of the newer one, with which readers must begin from now on.

    Raises:
        MaintenanceConflictError: They begin with another.
        OSError: The log cannot be read, or the file not be deleted.
    """
    files = DeltaFileSystemHandler(place.url(table), place.options)
    file = files.open_input_file(_LAST_CHECKPOINT)
    hint = bytes(file.read(file.size()))
    named = None
    with suppress(ValueError):
        named = json.loads(hint)
    # A table whose hint names a checkpoint that is gone cannot be read where none is newer.
    if not isinstance(named, dict) or named.get("version") != by:
        raise MaintenanceConflictError(
            f"{place.url(table)}: {_LAST_CHECKPOINT} is {hint!r}, not of version {by}, whose "
            "checkpoint was just made; none was deleted, the next checkpoint puts it right"
        )
    with suppress(FileNotFoundError):
        files.delete_file(f"_delta_log/{version:020}.checkpoint.parquet")
