"""Execution of a plan with delta-rs: each action is at most one commit and can be interrupted.

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
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction

# Private, because delta-rs has no public function that reads or deletes a file of the log. Another
# object store client would have other names and defaults of storage options. deltalake is pinned to
# one version, and tests run this in a folder and on S3.
from deltalake._internal import DeltaFileSystemHandler

from lakehouse.core.delta_rs import Location, delta_errors, refresh
from lakehouse.errors import MaintenanceConflictError, MaintenanceError, extra
from lakehouse.ops.maintain import plan
from lakehouse.ops.maintain.table_state import CHECKED, CLEANED, mark, uncommented
from lakehouse.tables import Table
from lakehouse.tables.bronze import COMPACTED_LEVEL, writer_properties
from lakehouse.tables.error_text import wrong_version

if (problem := wrong_version("deltalake")) is not None:
    raise MaintenanceError(f"maintain: {problem}. Install {extra('maintain')}")

OWNER: Final = "jmxlake.maintenance"
"""Table property: name of the process that compacted last."""

_NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_APPLICATION: Final = {"jmxlake": "maintain"}
_NO_RETRY: Final[dict[str, Any]] = {
    "commit_properties": CommitProperties(_APPLICATION), "post_commithook_properties": _NO_HOOKS,
}  # fmt: skip


class Executor:
    """Executor of actions on the tables of a lake.

    delta-rs 1.6.6 commits two concurrent compactions of the same files, which duplicates every row.
    But it rejects a commit if the table's metadata changed after it was loaded. The maintenance
    therefore writes its name into the table before it compacts. A concurrent commit of another
    maintenance then fails, like the write of a fenced producer.

    Args:
        location: The lake.
        name: Unique name of this maintenance.
    """

    def __init__(self, location: Location, name: str) -> None:
        self._location, self._name = location, name

    def run(self, table: Table, delta: DeltaTable, action: plan.Action) -> dict[str, int]:
        """Run one action and update ``delta``.

        Returns:
            Figures of its outcome, by name.

        Raises:
            MaintenanceConflictError: Another writer committed first. The table did not change.
            MaintenanceError: It failed.
        """
        with delta_errors(self._location.url(table)):
            match action:
                case plan.Comment():
                    _comment(table, delta)
                case plan.Drop():
                    deleted = delta.delete(f"date < '{action.before}'", **_retried())
                    return {"files": deleted["num_removed_files"]}
                case plan.Compact():
                    self.take_ownership(delta)
                    return _compact(table, delta, action)
                case plan.Checkpoint():
                    return self._checkpoint(table, delta, action)
                case plan.Expire():
                    # delta-rs expires up to the checkpoint before the loaded version.
                    self._location.open(table, action.read).cleanup_metadata()
                case plan.Vacuum():
                    self.take_ownership(delta)
                    return {"files": len(_vacuum(delta, action, dry_run=False))}
                case plan.NoteCleaned():
                    _note(delta, {CLEANED: action.day})
        return {}

    def preview(self, table: Table, delta: DeltaTable, action: plan.Action) -> dict[str, int]:
        """Return the figures of an action's outcome that are known in advance."""
        if not isinstance(action, plan.Vacuum):
            return {}
        with delta_errors(self._location.url(table)):
            return {"files": len(_vacuum(delta, action, dry_run=True))}

    def take_ownership(self, delta: DeltaTable) -> None:
        """Make concurrent commits of another maintenance fail."""
        present = delta.metadata().configuration
        # Compaction and vacuum ignore _NO_HOOKS. Without the second property, each hundredth commit
        # would expire the log, including commits that the rollup has not read.
        wanted = {OWNER: self._name, "delta.enableExpiredLogCleanup": "false"}
        differing = {name: value for name, value in wanted.items() if present.get(name) != value}
        if differing:
            delta.alter.set_table_properties(differing, raise_if_not_exists=False, **_NO_RETRY)
            refresh(delta)

    def _checkpoint(
        self, table: Table, delta: DeltaTable, action: plan.Checkpoint
    ) -> dict[str, int]:
        version = delta.version()
        delta.create_checkpoint()
        of_slot, superseded = slot(version, action.at, partial(mark, delta))
        marks = {CHECKED: version}
        try:
            if superseded >= 0:
                supersede(self._location, table, superseded, version)
            marks |= of_slot
        finally:
            # If the deletion fails, the new checkpoint still exists, without a slot.
            _note(delta, marks)
        return {"version": version}


def _retried(*transactions: Transaction) -> dict[str, Any]:
    how = CommitProperties(_APPLICATION, max_commit_retries=100, app_transactions=[*transactions])
    return {"commit_properties": how, "post_commithook_properties": _NO_HOOKS}


def _comment(table: Table, delta: DeltaTable) -> None:
    """Write missing comments in one commit; the columns keep their types.

    Agents check only names and types. They retry their concurrent appends, which conflict.
    """
    if columns := uncommented(table, delta):
        delta.alter.add_columns(columns, **_NO_RETRY)
        refresh(delta)


def _compact(table: Table, delta: DeltaTable, action: plan.Compact) -> dict[str, int]:
    with _one_core():
        outcome = delta.optimize.compact(
            partition_filters=[("date", "=", str(action.date))] if action.date else None,
            target_size=action.target_size,
            max_concurrent_tasks=1,
            writer_properties=writer_properties(table, COMPACTED_LEVEL),
            **_NO_RETRY,
        )
    return {"files": outcome["numFilesRemoved"], "into": outcome["numFilesAdded"]}


def _vacuum(delta: DeltaTable, action: plan.Vacuum, *, dry_run: bool) -> list[str]:
    return delta.vacuum(action.hours, dry_run=dry_run, full=action.full, **_NO_RETRY)


def _note(delta: DeltaTable, marks: dict[str, int]) -> None:
    """Store numbers in the table, with a commit without files.

    The second of two concurrent maintenances fails here because the first has used the names.
    """
    noted = _retried(*(Transaction(app, number) for app, number in marks.items()))
    columns = delta.metadata().partition_columns
    delta.create_write_transaction([], "append", delta.schema(), columns, **noted)
    delta.update_incremental()


@contextmanager
def _one_core() -> Iterator[None]:
    """Make delta-rs read files in sequence during a compaction.

    It uses one reader per core of this thread and mixes their rows: with 16 cores, the rows of an
    hour would spread over the whole file. Other threads keep their cores.
    """
    if sys.platform != "linux":
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


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
    # A table is unreadable if its hint refers to a deleted checkpoint without a newer checkpoint.
    if not isinstance(hint, dict) or hint.get("version") != by:
        raise MaintenanceConflictError(
            f"{url}: {_LAST_CHECKPOINT} is {text!r}, but the checkpoint of version {by} was just "
            "written. Maintenance keeps the old checkpoint; the next one corrects it"
        )
    with suppress(FileNotFoundError):
        files.delete_file(f"_delta_log/{version:020}.checkpoint.parquet")
