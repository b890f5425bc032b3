"""Does what a plan says, by delta-rs; every action is one commit or none, and can be killed."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from deltalake import CommitProperties, PostCommitHookProperties, Transaction

from lakehouse.maintain import checkpoints
from lakehouse.maintain.place import explained
from lakehouse.maintain.plan import Checkpoint, Compact, Drop, Expire, NoteCleaned, Vacuum
from lakehouse.maintain.state import CHECKED, CLEANED, mark
from lakehouse.tables import parquet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalake import DeltaTable

    from lakehouse.maintain.place import Place
    from lakehouse.maintain.plan import Action
    from lakehouse.tables import Table

TURN: Final = "jmxlake.maintenance"
"""Table property: name of the maintenance that compacted last."""

_NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_COMMIT_RETRIES: Final = 100
_WHO: Final = {"jmxlake": "maintain"}
_ONCE: Final[dict[str, Any]] = {
    "commit_properties": CommitProperties(_WHO), "post_commithook_properties": _NO_HOOKS,
}  # fmt: skip
_AGAIN: Final = {
    **_ONCE, "commit_properties": CommitProperties(_WHO, max_commit_retries=_COMMIT_RETRIES),
}  # fmt: skip
# Agents make tables with it now. Compaction and vacuum do not heed _NO_HOOKS: without it, each
# hundredth commit of theirs would expire the log, whoever has read it or not.
_TABLES_OF_OLD: Final = {"delta.enableExpiredLogCleanup": "false"}

Figures = dict[str, int]


class Work:
    """Does actions on the tables of a lake.

    delta-rs 1.6.6 lets two compactions of the same files both commit, and every row is there twice.
    It does refuse a commit when the table's metadata changed since it was loaded. So who is about
    to compact writes its name into the table first: whatever another maintenance has under way
    fails from then on, as a producer does that was fenced.

    Args:
        place: The lake.
        name: Of this maintenance; no other has it.
    """

    def __init__(self, place: Place, name: str) -> None:
        self._place, self._name = place, name

    def do(self, table: Table, delta: DeltaTable, action: Action) -> Figures:
        """Do one action; ``delta`` is up to date afterwards.

        Returns:
            What it brought, by name.

        Raises:
            MaintenanceConflictError: Another writer was faster; nothing was changed.
            MaintenanceError: It failed.
        """
        with explained(self._place.url(table)):
            match action:
                case Drop():
                    told = delta.delete(f"date < '{action.before}'", **_AGAIN)
                    return {"files": told["num_removed_files"]}
                case Compact():
                    self._take_turn(delta)
                    return _compact(table, delta, action)
                case Checkpoint():
                    return self._checkpoint(table, delta, action)
                case Expire():
                    # Up to the version that is loaded, and never beyond a checkpoint before it.
                    self._place.open(table, action.read).cleanup_metadata()
                    return {}
                case Vacuum():
                    self._take_turn(delta)
                    return {"files": len(_vacuum(delta, action, dry_run=False))}
                case NoteCleaned():
                    _note(delta, {CLEANED: action.day})
                    return {}

    def preview(self, table: Table, delta: DeltaTable, action: Action) -> Figures:
        """What an action would bring, as far as that is known without doing it."""
        if not isinstance(action, Vacuum):
            return {}
        with explained(self._place.url(table)):
            return {"files": len(_vacuum(delta, action, dry_run=True))}

    def _take_turn(self, delta: DeltaTable) -> None:
        found = delta.metadata().configuration
        wanted = {TURN: self._name, **_TABLES_OF_OLD}
        differing = {name: value for name, value in wanted.items() if found.get(name) != value}
        if not differing:
            return
        delta.alter.set_table_properties(differing, raise_if_not_exists=False, **_ONCE)
        delta.update_incremental()

    def _checkpoint(self, table: Table, delta: DeltaTable, action: Checkpoint) -> Figures:
        version = delta.version()
        delta.create_checkpoint()
        slot = checkpoints.slot(version, action.at, partial(mark, delta))
        marks = {CHECKED: version}
        try:
            if slot.superseded >= 0:
                checkpoints.supersede(self._place, table, slot.superseded, version)
            marks |= slot.marks
        finally:
            # Where nothing can be deleted, the checkpoint stands all the same, without a slot.
            _note(delta, marks)
        return {"version": version}


def _compact(table: Table, delta: DeltaTable, action: Compact) -> Figures:
    with _in_order():
        told = delta.optimize.compact(
            partition_filters=[("date", "=", str(action.date))] if action.date else None,
            target_size=action.target_size,
            max_concurrent_tasks=1,
            writer_properties=parquet.compacted_properties(table),
            **_ONCE,
        )
    return {"files": told["numFilesRemoved"], "into": told["numFilesAdded"]}


def _vacuum(delta: DeltaTable, action: Vacuum, *, dry_run: bool) -> list[str]:
    return delta.vacuum(action.hours, dry_run=dry_run, full=action.full, **_ONCE)


def _note(delta: DeltaTable, marks: dict[str, int]) -> None:
    """Note something in the table, by a commit without files.

    Of two maintenances that run at once the second fails here: the first has used the names.
    """
    noted = [Transaction(app, number) for app, number in marks.items()]
    properties = CommitProperties(_WHO, max_commit_retries=_COMMIT_RETRIES, app_transactions=noted)
    delta.create_write_transaction(
        [], "append", delta.schema(), delta.metadata().partition_columns,
        commit_properties=properties, post_commithook_properties=_NO_HOOKS,
    )  # fmt: skip
    delta.update_incremental()


@contextmanager
def _in_order() -> Iterator[None]:
    """Let delta-rs read files one after the other while it compacts.

    It deals them to as many readers as this thread may use cores, and writes what comes first: on
    16 cores an hour would be strewn over the whole file. Other threads keep their cores.
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
