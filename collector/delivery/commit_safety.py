"""Guarantees of a store that delta-rs relies on and does not check.

A table in a folder: delta-rs leaves its files to the kernel, which writes them some time later. The
spool must not drop a batch before that, because a power failure would remove it from both.
``fsync_commits`` returns when the commits are on the disk.

A table in a store: Delta needs a put that fails if the object exists. Some stores ignore this
condition, report success to every writer and keep only the last commit. ``lost_commits`` detects
them.
"""

import errno
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake.exceptions import DeltaError

from collector.delivery import arrow
from collector.errors import LakeError, extra
from lakehouse.tables import Table, delta_log
from lakehouse.tables.error_text import wrong_version

if (problem := wrong_version("deltalake")) is not None:
    raise LakeError(
        f"lake: {problem}, on which exactly-once delivery relies; install {extra('agent')}"
    )

# Number of an earlier process's commits that are synced again. The kernel keeps unwritten data for
# half a minute at most, so older commits are on the disk.
_LOOK_BACK: Final = 100
_LAKE_DEPTH: Final = 3  # a table's layer, the lake and its parent
_WRITERS: Final = 6
_ROUNDS: Final = 3  # writers that happen to run one after another prove nothing
_SECONDS: Final = 60.0
# Maintenance writes checkpoints and cleans the log, from one place (delta-rs #2174, #3692).
NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def folder_of(url: str) -> Path | None:
    """Return the folder of a table. None: a store, whose response means that data is durable."""
    if url.startswith("file://"):
        return delta_log.folder_of(url)
    return None if "://" in url else Path(url)


def fsync_commits(table: Path, after: int | None, until: int) -> None:
    """Wait until commits and their data files are on the disk.

    Args:
        table: The table's folder.
        after: Last version that is on the disk. None: unknown.
        until: Last version to write to the disk.

    Raises:
        OSError: The disk rejected the data.
    """
    first = max(0, until - _LOOK_BACK) if after is None else after + 1
    log = table / "_delta_log"
    commits = [log / f"{version:020}.json" for version in range(first, until + 1)]
    files = [file for commit in commits for file in _added_files(table, commit)]
    folders = {file.parent for file in (*files, *commits)}
    above = {folder for one in folders for folder in one.parents if folder.is_relative_to(table)}
    for one in (*files, *commits, *folders, *above, table):
        _fsync(one)
    for one in list(table.absolute().parents)[:_LAKE_DEPTH]:
        with suppress(PermissionError):  # another user's folder, so the agent did not create it
            _fsync(one)


def _added_files(table: Path, commit: Path) -> Iterator[Path]:
    try:
        lines = commit.read_bytes().splitlines()  # bytes, because names can contain other line ends
    except FileNotFoundError:  # maintenance removed it after a checkpoint
        return
    for line in lines:
        added = json.loads(line).get("add")
        if added is not None:
            with suppress(delta_log.PathError):  # another writer's file, outside the table
                yield table / delta_log.below_table(added["path"])


def _fsync(path: Path) -> None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:  # maintenance replaced it
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems, of folders
            raise
    finally:
        os.close(file)


def lost_commits(open_table: Callable[[], DeltaTable], table: Table) -> int:
    """Commit without rows from several writers at once; return how many commits were lost.

    A lost commit succeeded for its writer and is not in the log.

    Args:
        open_table: Opens the table, once for each writer.
        table: Declaration of the table.

    Raises:
        DeltaError: All commits failed.
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
    """Return True if the commit succeeded."""
    start.wait(_SECONDS)
    try:
        handle.create_write_transaction(
            [], "append", arrow.schema(table), list(table.partition_by),
            commit_properties=CommitProperties(max_commit_retries=0),
            post_commithook_properties=NO_HOOKS,
        )  # fmt: skip
    except (DeltaError, OSError):  # another writer was faster, or the store failed
        return False
    return True
