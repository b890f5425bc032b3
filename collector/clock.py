"""Clocks: the wall clock for instants, and a steady clock to detect clock steps."""

import time
from dataclasses import dataclass, field
from typing import Final, Protocol

_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # macOS has the latter
_LOOK_US: Final = 100_000  # longest time between reading the two clocks
_STEP_US: Final = 1_000_000  # NTP slews offsets below half a second and steps larger ones


class Clock(Protocol):
    """Both clocks, in microseconds."""

    def wall_us(self) -> int:
        """Return the time since the epoch (UTC)."""

    def steady_us(self) -> int:
        """Return the time since a fixed instant. It never steps."""


class SystemClock:
    """The clocks of this host. The steady clock runs while the host sleeps."""

    def wall_us(self) -> int:
        """Return the time since the epoch (UTC)."""
        return time.time_ns() // 1_000

    def steady_us(self) -> int:
        """Return the time since the start of the host."""
        return time.clock_gettime_ns(_BOOT) // 1_000


@dataclass(slots=True)
class StepDetector:
    """Compares the two clocks from call to call."""

    clock: Clock
    _offset_us: int | None = field(default=None, init=False)

    def check(self) -> tuple[int, int] | None:
        """Return old and new time of a step of the wall clock since the last call. None if none."""
        wall_us, steady_us = self._both()
        before, self._offset_us = self._offset_us, wall_us - steady_us
        if before is None or abs(self._offset_us - before) < _STEP_US:
            return None
        return steady_us + before, wall_us

    def _both(self) -> tuple[int, int]:
        """Return both clocks at one instant. Repeat if the thread was preempted in between."""
        while True:
            earlier_us, wall_us = self.clock.steady_us(), self.clock.wall_us()
            steady_us = self.clock.steady_us()
            if steady_us - earlier_us < _LOOK_US:
                return wall_us, steady_us
