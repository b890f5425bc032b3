"""The shortest incident that is sure to be seen."""

from __future__ import annotations

from lakehouse.tables import MAX_GAP_INTERVALS


def floor_us(interval_us: int, slowest_us: int) -> int:
    """The longest time that may lie between two looks with nothing said to be unknown.

    Mostly that is one interval. But where an agent was killed and is back, or answers are late, it
    is more: an answer vouches for so many intervals at most, until the next question is asked. What
    was looked at first in the one answer may be looked at last in the other.

    Args:
        interval_us: Between scrapes.
        slowest_us: What the slowest answer took.
    """
    return round(MAX_GAP_INTERVALS * interval_us) + 2 * slowest_us
