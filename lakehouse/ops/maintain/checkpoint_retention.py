"""Which checkpoints are kept, and for how long.

A checkpoint names every file that was removed in the last 30 days, so it is large, and all of them
for 30 days are far larger than the data. Readers of the newest version need the newest checkpoint;
time travel reads the checkpoint before a version and replays the commits from there. Hourly
checkpoints make that quick for a rollup for a day, daily ones for as long as the log is kept. The
newest three are kept, because a reader that has just opened a table reads its checkpoint later.

So every checkpoint gets a slot, and supersedes the one that had it. Slots are app transactions: the
commit that notes a checkpoint says which version its slot holds, and nothing else is ever deleted.
The first checkpoint of a day has no slot: it expires with the log.
"""

import datetime as dt
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Final

# Private: delta-rs has no public call that reads or deletes a file of the log. Another object store
# client would name and default the storage options differently from the agents'. deltalake is
# pinned to one version, and tests run this in a folder and on S3.
from deltalake._internal import DeltaFileSystemHandler

from lakehouse.core.delta_rs import Location
from lakehouse.errors import MaintenanceConflictError
from lakehouse.tables import Table

_LAST_CHECKPOINT: Final = "_delta_log/_last_checkpoint"

LAST_HOUR: Final = "jmxlake-maintain/checkpoint/last-hour"
"""App transaction: the hour, since 1970, in which the last checkpoint was made."""

NEWEST: Final = tuple(f"jmxlake-maintain/checkpoint/newest-{number}" for number in range(3))
"""App transactions: versions of the newest checkpoints that are not the first of an hour."""

HOURS: Final = tuple(f"jmxlake-maintain/checkpoint/hour-{hour:02}" for hour in range(24))
"""App transactions: versions of the first checkpoints of the last day's hours."""


def slot(version: int, at: dt.datetime, mark: Callable[[str], int]) -> tuple[dict[str, int], int]:
    """The slot of a new checkpoint.

    Args:
        version: Its version.
        at: When it was made, UTC.
        mark: Gives the number of an app transaction; -1 for none.

    Returns:
        App transactions to write, and the version of the checkpoint that had the slot; -1 for none.
    """
    hour, last = int(at.timestamp()) // 3600, mark(LAST_HOUR)
    marks = {LAST_HOUR: hour}
    # A clock that was set back starts a new hour, too: the last one may be far ahead.
    if hour // 24 != last // 24:
        return marks, -1
    app = HOURS[hour % 24] if hour != last else min(NEWEST, key=mark)
    return {**marks, app: version}, mark(app)


def supersede(location: Location, table: Table, version: int, by: int) -> None:
    """Delete a classic checkpoint of one file; one that does not exist is ignored.

    Args:
        location: The lake.
        table: The table.
        version: Version of the checkpoint.
        by: Version of the newer one, where readers start now.

    Raises:
        MaintenanceConflictError: Readers start at another one.
        OSError: The log cannot be read, or the file cannot be deleted.
    """
    url = location.url(table)
    files = DeltaFileSystemHandler(url, location.options)
    file = files.open_input_file(_LAST_CHECKPOINT)
    text = bytes(file.read(file.size()))
    hint = None
    with suppress(ValueError, RecursionError):
        hint = json.loads(text)
    # A table whose hint names a deleted checkpoint cannot be read if no newer one exists.
    if not isinstance(hint, dict) or hint.get("version") != by:
        raise MaintenanceConflictError(
            f"{url}: {_LAST_CHECKPOINT} is {text!r}, not of version {by}, whose checkpoint was "
            "just written; none was deleted, the next checkpoint corrects it"
        )
    with suppress(FileNotFoundError):
        files.delete_file(f"_delta_log/{version:020}.checkpoint.parquet")
