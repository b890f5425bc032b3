"""Lines that another process appends to a file: rotated, truncated, half written, garbage."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from collector.errors import SourceRefusedError

LONGEST_LINE: Final = 16 << 20
"""Bytes; statistics of a client with 10,000 partitions have 10 MB."""
MOST_AT_ONCE: Final = 4 * LONGEST_LINE
_MOST_LINES: Final = 100_000
"""At once; statistics have 1,500 bytes and more."""


class AppendedLines:
    """Follows a file; what was in it long before we came is passed over.

    A renamed file is read to its end, then the new one from its start. A truncated file is read
    from its start. A line that is longer than ``LONGEST_LINE`` is dropped. Of
    more than ``MOST_AT_ONCE`` since the last time, only the end is read.

    Args:
        path: The file; the other process may write half a line at a time.
        where: What is read; begins an error's line.
    """

    def __init__(self, path: Path, where: str) -> None:
        self._path, self._where = path, where
        self._file: BinaryIO | None = None
        self._rest = b""
        self._skipping = False

    def open(self) -> BinaryIO:
        """The file, opened if it was not.

        Raises:
            SourceRefusedError: It is not there, may not be read or is no file.
        """
        if self._file is None:
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
            self._file = os.fdopen(handle, "rb")
        return self._file

    def new(self) -> Iterator[bytes | None]:
        """The lines that were finished since the last call, without their ends; None: dropped.

        Raises:
            SourceRefusedError: It is not there, may not be read or is no file.
        """
        file = self.open()
        yield from self._lines(file)
        if self._is_replaced(file):
            yield from self._lines(file)  # what came between the last look and the renaming
            self.close()
            yield from self._lines(self.open())

    def close(self) -> None:
        """Forget the file and where we were in it."""
        if self._file is not None:
            self._file.close()
        self._file, self._rest, self._skipping = None, b"", False

    def _lines(self, file: BinaryIO) -> Iterator[bytes | None]:
        # Only to where it ends now: who appends faster than we read must not hold us up.
        size = os.fstat(file.fileno()).st_size
        begin, at, lines = max(0, size - MOST_AT_ONCE), file.tell(), 0
        if not begin <= at <= size:
            at = file.seek(begin)
            self._rest, self._skipping = b"", begin > 0  # maybe inside a line
        while at < size and (part := file.readline(LONGEST_LINE)):
            at, lines = at + len(part), lines + 1
            if lines > _MOST_LINES:
                at = file.seek(size)
                self._rest, self._skipping = b"", True
                yield None
                return
            if part.endswith(b"\n"):
                line, self._rest = self._rest + part[:-1], b""
                if not self._skipping:
                    yield line
                self._skipping = False
            elif not self._skipping:
                self._rest += part
                if len(self._rest) >= LONGEST_LINE:
                    self._rest, self._skipping = b"", True
                    yield None

    def _is_replaced(self, file: BinaryIO) -> bool:
        try:
            return not os.path.samestat(self._path.stat(), os.fstat(file.fileno()))
        except OSError:
            return False  # renamed, and the new one is not there yet
