"""Clocks that a test holds in its hand."""

from __future__ import annotations

import mmap
import struct
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_OFFSET: Final = struct.Struct("<q")
_LOOK_US: Final = 200  # how long each look at a virtual clock takes: an answer follows its question


class SteppableClock:
    """This host's clocks; the wall clock is off by what a file says, in microseconds."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._offset = mmap.mmap(file.fileno(), _OFFSET.size)

    @staticmethod
    def set(path: Path, offset_us: int) -> None:
        """Set the clocks that look at this file; also makes it."""
        if not path.exists():
            path.write_bytes(_OFFSET.pack(offset_us))
        with path.open("r+b") as file:
            file.write(_OFFSET.pack(offset_us))

    def wall_us(self) -> int:
        """Since the epoch, UTC, as far as this clock knows."""
        return time.time_ns() // 1_000 + int(_OFFSET.unpack(self._offset[: _OFFSET.size])[0])

    def steady_us(self) -> int:
        """Since the host was started."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000


class VirtualClock:
    """A clock that goes on only when it is told to, or looked at."""

    def __init__(self, now_us: int) -> None:
        self._now_us = now_us

    def wall_us(self) -> int:
        """Since the epoch, UTC."""
        self._now_us += _LOOK_US
        return self._now_us

    def steady_us(self) -> int:
        """The same instant; it never jumps."""
        return self._now_us

    def go_on(self, to_us: int) -> None:
        """Let time pass up to an instant."""
        self._now_us = max(self._now_us, to_us)
