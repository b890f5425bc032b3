"""A probe: whether a store lets just one of several writers commit a version.

Delta needs a put that fails where the object is there already. Stores that ignore this condition
give every writer a good answer, and keep the commit of the last: rows of the others are gone.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake.exceptions import DeltaError

from collector.delivery import arrow
from lakehouse.tables import Table

_WRITERS: Final = 6
_ROUNDS: Final = 3  # writers that come one after the other see each other, and show nothing
# Checkpoints and clean-up are the maintenance's, from one place (delta-rs #2174, #3692).
NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_SECONDS: Final = 60.0


def lost_commits(open_table: Callable[[], DeltaTable], table: Table) -> int:
    """How many of some commits without rows, created at the same time, succeeded and are not there.

    Args:
        open_table: Opens the table, once for each writer.
        table: Its declaration.

    Raises:
        DeltaError: None of the commits succeeded.
    """
    before, succeeded = open_table().version(), 0
    with ThreadPoolExecutor(_WRITERS) as writers:
        for _ in range(_ROUNDS):
            start = threading.Barrier(_WRITERS)
            handles = [open_table() for _ in range(_WRITERS)]
            succeeded += sum(writers.map(lambda one, at=start: _commits(one, table, at), handles))
    if not succeeded:
        raise DeltaError("Failed to commit transaction: 0")
    return max(0, succeeded - (open_table().version() - before))


def _commits(handle: DeltaTable, table: Table, start: threading.Barrier) -> bool:
    """Whether a commit succeeds."""
    start.wait(_SECONDS)
    try:
        handle.create_write_transaction(
            [], "append", arrow.schema(table), list(table.partition_by),
            commit_properties=CommitProperties(max_commit_retries=0),
            post_commithook_properties=NO_HOOKS,
        )  # fmt: skip
    except (DeltaError, OSError):  # another was faster, or the store gave no good answer
        return False
    return True
