"""The lines that somebody else appends to a file: rotated, truncated, half written, garbage."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, BinaryIO, Final

from collector.errors import SourceRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_LINE: Final = 16 << 20
"""Bytes; statistics of a client with 10,000 partitions have 10 MB."""
_MOST: Final = 4 * LONGEST_LINE
_CHUNK: Final = 1 << 18


class AppendedLines:
    """Follows a file; what was in it long before we came is passed over.

    A file that was renamed is read to its end before the new one is begun. One that was cut short
    is read from its start. A line that is longer than ``LONGEST_LINE`` is dropped and counted. Of
    more than 64 MiB since the last time, only the end is read.

    Args:
        path: The file; whoever appends may write half a line at a time.
        where: What is read; begins an error's line.
    """

    def __init__(self, path: Path, where: str) -> None:
        self._path = path
        self._where = where
        self._file: BinaryIO | None = None
        self._rest = b""
        self._skipping = False
        self.dropped = 0

    def open(self) -> None:
        """Open the file if it is not open.

        Raises:
            SourceRefusedError: It is not there, may not be read or is no file.
        """
        if self._file is None:
            self._file = self._opened()
            self._jump(self._size() - LONGEST_LINE)

    def new(self) -> Iterator[bytes]:
        """The lines that were finished since the last call, without their ends.

        Raises:
            SourceRefusedError: It is not there, may not be read or is no file.
        """
        self.open()
        yield from self._lines()
        if self._is_replaced():
            yield from self._lines()  # what came between the last look and the renaming
            self.close()
            self._file = self._opened()
            yield from self._lines()

    def close(self) -> None:
        """Forget the file and where we were in it."""
        if self._file is not None:
            self._file.close()
        self._file, self._rest, self._skipping = None, b"", False

    def _opened(self) -> BinaryIO:
        try:
            # A pipe without a writer would hold us up for ever.
            handle = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise SourceRefusedError(
                f"{self._where}: {error.strerror}; does the client's stats_cb append there?"
            ) from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise SourceRefusedError(f"{self._where}: it is no regular file; name one")
        return os.fdopen(handle, "rb", buffering=0)

    def _lines(self) -> Iterator[bytes]:
        assert self._file is not None  # noqa: S101 - for mypy
        size = self._size()
        if size < self._file.tell():
            self._file.seek(0)
            self._rest, self._skipping = b"", False
        self._jump(size - _MOST)
        # Only to where it ended a moment ago: who appends faster than we read must not hold us up.
        while chunk := self._file.read(min(_CHUNK, size - self._file.tell())):
            *finished, rest = chunk.split(b"\n")
            for line in finished:
                whole, self._rest = self._rest + line, b""
                if not self._skipping:
                    yield whole
                self._skipping = False
            self._rest += rest
            if len(self._rest) > LONGEST_LINE:
                self._drop()

    def _drop(self) -> None:
        self._rest = b""
        if not self._skipping:
            self._skipping = True
            self.dropped += 1

    def _jump(self, to: int) -> None:
        """Go on from an offset ahead of us: what stands there is the end of some line."""
        if self._file is not None and to > self._file.tell():
            self._file.seek(to)
            self._rest, self._skipping = b"", True

    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size if self._file else 0

    def _is_replaced(self) -> bool:
        try:
            now = self._path.stat()
        except OSError:
            return False  # renamed, and the new one is not there yet
        assert self._file is not None  # noqa: S101 - for mypy
        then = os.fstat(self._file.fileno())
        return (now.st_dev, now.st_ino) != (then.st_dev, then.st_ino)
