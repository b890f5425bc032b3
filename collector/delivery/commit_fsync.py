"""A lake in a folder: what was committed to a table, brought to the disk itself.

delta-rs leaves its files to the kernel, which writes them some time later. The spool must not
forget a batch before that: a power failure would take it from both.
"""

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from lakehouse.tables import paths

# How many commits of an earlier process are synced again. The kernel has written older ones: it
# leaves nothing in its cache for longer than half a minute.
_LOOK_BACK: Final = 100
_LAKE_DEPTH: Final = 3  # a table's layer, the lake and what that lies in


def folder_of(url: str) -> Path | None:
    """The folder of a table; None where it is in a store, which answers when it has it."""
    if url.startswith("file://"):
        return paths.folder_of(url)
    return None if "://" in url else Path(url)


def fsync_commits(table: Path, after: int | None, until: int) -> None:
    """Return when some commits and the files that they add are on the disk.

    Args:
        table: The table's folder.
        after: The version up to which that is so; None: not known.
        until: The version up to which it is to be so.

    Raises:
        OSError: The disk did not take them.
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
        with suppress(PermissionError):  # not ours, so we have not created it
            _fsync(one)


def _added_files(table: Path, commit: Path) -> Iterator[Path]:
    try:
        lines = commit.read_bytes().splitlines()  # of text, names can hold other ends of lines
    except FileNotFoundError:  # a checkpoint has it, and the maintenance has cleaned up
        return
    for line in lines:
        added = json.loads(line).get("add")
        if added is not None:
            with suppress(paths.PathError):  # another writer's: an agent's own file is in the table
                yield table / paths.below_table(added["path"])


def _fsync(path: Path) -> None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:  # the maintenance has put another in its place
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # so say some of their folders
            raise
    finally:
        os.close(file)
