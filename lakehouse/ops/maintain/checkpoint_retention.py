"""Retention of checkpoints.

A checkpoint lists every file removed in the last 30 days. It is large, and all checkpoints of 30
days are far larger than the data. Readers of the newest version need the newest checkpoint. Time
travel reads the checkpoint before a version and replays the commits after it. Hourly checkpoints
make it fast for one day, and daily checkpoints for the rest of the log. The newest three are kept
as well, because a reader that has just opened a table reads its checkpoint later.

Every checkpoint therefore gets a slot and replaces the previous checkpoint of the slot. Slots are
app transactions: the commit that records a checkpoint contains the version in its slot. Maintenance
deletes only the replaced checkpoints. The first checkpoint of a day has no slot and expires with
the log.
"""

import datetime as dt
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Final

# Private, because delta-rs has no public function that reads or deletes a file of the log. Another
# object store client would have other names and defaults of storage options. deltalake is pinned to
# one version, and tests run this in a folder and on S3.
from deltalake._internal import DeltaFileSystemHandler

from lakehouse.core.delta_rs import Location
from lakehouse.errors import MaintenanceConflictError
from lakehouse.tables import Table

_LAST_CHECKPOINT: Final = "_delta_log/_last_checkpoint"

LAST_HOUR: Final = "jmxlake-maintain/checkpoint/last-hour"
"""App transaction: hour of the last checkpoint, since 1970."""

NEWEST: Final = tuple(f"jmxlake-maintain/checkpoint/newest-{number}" for number in range(3))
"""App transactions: versions of the newest checkpoints except the first of an hour."""

HOURS: Final = tuple(f"jmxlake-maintain/checkpoint/hour-{hour:02}" for hour in range(24))
"""App transactions: versions of the first checkpoints of the last day's hours."""


def slot(version: int, at: dt.datetime, mark: Callable[[str], int]) -> tuple[dict[str, int], int]:
    """Return the slot of a new checkpoint.

    Args:
        version: Version of the checkpoint.
        at: Time of the checkpoint (UTC).
        mark: Returns the number of an app transaction. -1: none.

    Returns:
        App transactions to write, and the version of the previous checkpoint in the slot (-1:
        none).
    """
    hour, last = int(at.timestamp()) // 3600, mark(LAST_HOUR)
    marks = {LAST_HOUR: hour}
    # After a clock was set back, the last hour can be far ahead. A new hour starts then as well.
    if hour // 24 != last // 24:
        return marks, -1
    app = HOURS[hour % 24] if hour != last else min(NEWEST, key=mark)
    return {**marks, app: version}, mark(app)


def supersede(location: Location, table: Table, version: int, by: int) -> None:
    """Delete a classic single-file checkpoint; ignore a missing file.

    Args:
        location: The lake.
        table: The table.
        version: Version of the checkpoint.
        by: Version of the newer checkpoint, where readers start now.

    Raises:
        MaintenanceConflictError: Readers start at another checkpoint.
        OSError: The log is unreadable, or the file cannot be deleted.
    """
    url = location.url(table)
    files = DeltaFileSystemHandler(url, location.options)
    file = files.open_input_file(_LAST_CHECKPOINT)
    text = bytes(file.read(file.size()))
    hint = None
    with suppress(ValueError, RecursionError):
        hint = json.loads(text)
    # A table is unreadable if its hint refers to a deleted checkpoint without a newer one.
    if not isinstance(hint, dict) or hint.get("version") != by:
        raise MaintenanceConflictError(
            f"{url}: {_LAST_CHECKPOINT} is {text!r}, but the checkpoint of version {by} was just "
            "written. Maintenance keeps the old checkpoint; the next one corrects it"
        )
    with suppress(FileNotFoundError):
        files.delete_file(f"_delta_log/{version:020}.checkpoint.parquet")
