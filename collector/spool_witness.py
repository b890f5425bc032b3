"""The witness: how far the spool was written, in a small file beside it.

SQLite ends its write-ahead log at the first frame that is torn or flipped, and says nothing. The
witness is written after each commit, without fsync: it outlives the process, and after a loss of
power it may lag behind, but it never claims what was not read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_DIGITS: Final = 20


class Written(NamedTuple):
    """Numbers of the last journal entry and of the last batch."""

    entry: int
    batch: int

    def __str__(self) -> str:
        return f"entry {self.entry}, batch {self.batch}"


def beside(spool: Path) -> Path:
    """Where the witness of a spool is."""
    return spool.with_name(spool.name + ".count")


def owner(spool: Path) -> str | None:
    """The id of the agent that the witness speaks of; None where there is none."""
    with suppress(OSError, ValueError, IndexError):
        return beside(spool).read_text("ascii").split()[0]
    return None


class Witness:
    """The file; an error at writing it is no error: it claims less then.

    Args:
        path: The file; it is made where it is missing.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def read(self, agent: str) -> Written:
        """How far the spool of this agent was written, as far as is known."""
        with suppress(OSError, ValueError):
            owner, entry, batch = os.pread(self._file, 256, 0).decode().split()
            if owner == agent:
                return Written(int(entry), int(batch))
        return Written(0, 0)

    def write(self, agent: str, written: Written) -> None:
        """Say how far it is written; the line has always the same length, so it needs no space."""
        line = f"{agent} {written.entry:0{_DIGITS}} {written.batch:0{_DIGITS}}\n"
        with suppress(OSError):
            os.pwrite(self._file, line.encode(), 0)
