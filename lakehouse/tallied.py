"""What is summed up of one subject: good and bad time, or events."""

from __future__ import annotations

from typing import Any, NamedTuple


class Times(NamedTuple):
    """Good and bad time of one subject, microseconds."""

    good_us: int = 0
    bad_us: int = 0
    bad_low_us: int = 0
    bad_high_us: int = 0


class Counts(NamedTuple):
    """Events of one subject.

    Attributes:
        counted: What the counter of good or of bad events rose by.
        total: What that of all events rose by.
        seen_us: Time in which both were read, of all that report them.
        are_good: Whether good events were counted.
    """

    counted: float
    total: float
    seen_us: int
    are_good: bool

    @property
    def good(self) -> float:
        """Good events; never more than all, for two counters are not read at one instant."""
        counted = min(self.counted, self.total)
        return counted if self.are_good else self.total - counted

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"good": self.good, "bad": self.total - self.good, "total": self.total}

    def times(self, expected_us: int) -> Times:
        """As much of the time that was seen is good as events were; without events none was."""
        seen = min(self.seen_us, expected_us)
        if self.total <= 0 or seen <= 0:
            return Times()
        bad = min(seen, round(seen * (self.total - self.good) / self.total))
        return Times(seen - bad, bad, bad, bad)
