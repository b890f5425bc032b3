"""Thresholds of the observed share for good results.

Reports, ``explain``, notebooks and views use them.
"""

from typing import Final, Literal

FLOOR_PERCENT: Final = 50.0
"""Default minimum of the observed share (percent of expected time) for a good result."""

WHOLE_PERCENT: Final = 99.0
"""Share from which a statement omits its coverage."""

State = Literal["bad", "good", "partly_known", "not_known", "not_collected", "not_applicable"]
"""Possible statements about a question or a subject."""


def state_of(percent: float | None, floor: float = FLOOR_PERCENT, *, bad: bool = False) -> State:
    """Return the state for an observed share of the expected time.

    Args:
        percent: Observed share of the expected time. None if no time was expected.
        floor: Minimum share for a good state.
        bad: A bad value was observed, which is always stated.
    """
    if bad:
        return "bad"
    if not percent or percent < floor:
        return "not_known"
    return "good" if is_whole(percent) else "partly_known"


def is_whole(percent: float | None) -> bool:
    """Return True if nearly all expected time was observed."""
    return percent is not None and percent >= WHOLE_PERCENT


def peak_high(high: float | None, unknown_us: int | None) -> float | None:
    """Return the upper bound of a peak. None if unknown time can hide a higher peak.

    Args:
        high: Upper bound of the observed peak.
        unknown_us: Unknown time of the subject (µs). None if it is not known.
    """
    return high if unknown_us == 0 else None
