"""Time: the wall clock for instants, a steady one to notice when the wall clock jumps."""

import time
from dataclasses import dataclass, field
from typing import Final, Protocol

_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # macOS has the latter
_LOOK_US: Final = 100_000  # at most, between two looks at the clocks
_STEP_US: Final = 1_000_000  # NTP slews what is smaller than half a second, and steps the rest


class Clock(Protocol):
    """Both clocks, in microseconds."""

    def wall_us(self) -> int:
        """Since the epoch, UTC."""

    def steady_us(self) -> int:
        """Since some fixed instant; never jumps."""


class SystemClock:
    """The clocks of this host; the steady one goes on while the host sleeps."""

    def wall_us(self) -> int:
        """Since the epoch, UTC."""
        return time.time_ns() // 1_000

    def steady_us(self) -> int:
        """Since the host was started."""
        return time.clock_gettime_ns(_BOOT) // 1_000


@dataclass(slots=True)
class StepDetector:
    """Compares the two clocks from call to call."""

    clock: Clock
    _offset_us: int | None = field(default=None, init=False)

    def check(self) -> tuple[int, int] | None:
        """From which instant to which the wall clock went at once since the last call, if so."""
        wall_us, steady_us = self._both()
        before, self._offset_us = self._offset_us, wall_us - steady_us
        if before is None or abs(self._offset_us - before) < _STEP_US:
            return None
        return steady_us + before, wall_us

    def _both(self) -> tuple[int, int]:
        """Both clocks at one instant: who lost the processor between two looks looks again."""
        while True:
            earlier_us, wall_us = self.clock.steady_us(), self.clock.wall_us()
            steady_us = self.clock.steady_us()
            if steady_us - earlier_us < _LOOK_US:
                return wall_us, steady_us
