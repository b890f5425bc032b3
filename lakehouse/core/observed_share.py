"""Thresholds of good news: how much of the expected time must have been observed.

Reports, ``explain``, notebooks and views all judge by these.
"""

from typing import Final, Literal

FLOOR_PERCENT: Final = 50.0
"""Observed share of the expected time below which nothing good is stated; the default."""

WHOLE_PERCENT: Final = 99.0
"""From this share on a statement does not carry how much was observed."""

State = Literal["bad", "good", "partly_known", "not_known", "not_collected", "not_applicable"]
"""What can be stated on a question or a subject."""


def state_of(percent: float | None, floor: float = FLOOR_PERCENT, *, bad: bool = False) -> State:
    """Return the state of anything that is judged over an observed share of its time.

    Args:
        percent: Observed share of the expected time; None: nothing was expected.
        floor: Share below which nothing good is stated.
        bad: Something bad was observed; that is always stated.
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
    """Return the high bound of a maximum; None: unknown time of its subject may hide a higher one.

    Args:
        high: The greatest that the observed maximum can truly be.
        unknown_us: Unknown time of the subject, microseconds; None: not known.
    """
    return high if unknown_us == 0 else None
