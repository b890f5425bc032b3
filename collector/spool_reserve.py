"""The reserve: room on a full disk for what makes room, the delivery of what waits."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Final, TypeVar

from collector.errors import SpoolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# SQLite's log has to go into the file before it can begin anew: 4 MiB, where that is to grow.
_BYTES: Final = 6 << 20
T = TypeVar("T")
_NO_ROOM: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


class Reserve:
    """A file beside the spool that stands for room; where there is none, we go without.

    Args:
        spool: The spool's file.
    """

    def __init__(self, spool: Path) -> None:
        self._path = spool.with_name(spool.name + ".reserve")

    def take(self) -> None:
        """Have the room, if the disk has it."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(file, 0, _BYTES)
            finally:
                os.close(file)
        except OSError:
            self._give_up()

    def using(self, work: Callable[[], T]) -> T:
        """Do it, and once more with the room of the reserve where there was none.

        Raises:
            SpoolError: It failed all the same.
        """
        try:
            return work()
        except SpoolError as error:
            if not _no_room(error) or not self._give_up():
                raise
        return work()

    def _give_up(self) -> bool:
        try:
            self._path.unlink()
        except OSError:
            return False
        return True


def _no_room(error: SpoolError) -> bool:
    return getattr(error.__cause__, "sqlite_errorcode", 0) & 0xFF in _NO_ROOM
