"""Whether this week differs from the last one by more than weeks do anyhow.

The test is of ranks: the change from the last week to this one is compared with the changes between
neighbouring weeks before. Its *p* is the share of all these changes, itself among them, that are as
large. It asks nothing of how incidents are distributed. Weeks that depend on one another make
changes that do so too, and these are what it is compared with; were the weeks themselves compared
instead, such dependence would be taken for a change.

Bounds count: the change is taken as small as the bounds of the two weeks allow, so that it is
significant only if it is so wherever the truth lies. Where they overlap nothing has changed for
sure.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.trends.weeks import scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.trends.weeks import Week

LEVEL: Final = 0.1
"""Twelve changes, of which this week's is the largest: p = 1/12. Thirteen weeks give no less."""

_LEAST: Final = 9
"""With fewer changes to compare with, no change could be significant: nothing is tested."""


class Change(NamedTuple):
    """From one week to the next; shares of time, more is worse.

    Attributes:
        share_low: The least that the share may have grown by.
        share_high: The most.
        p: Share of the changes that are as large, 0 to 1; None: not tested.
        compared: With how many earlier changes.
    """

    share_low: float
    share_high: float
    p: float | None
    compared: int

    @property
    def verdict(self) -> str:
        """``worse``, ``better``, ``as_usual``, ``within_bounds`` or ``untested``."""
        if self.share_low <= 0 <= self.share_high:
            return "within_bounds"
        if self.p is None:
            return "untested"
        if self.p > LEVEL:
            return "as_usual"
        return "worse" if self.share_low > 0 else "better"


def change(weeks: Sequence[Week | None]) -> Change | None:
    """The change from the last week but one to the last.

    Args:
        weeks: Oldest first; None where one is not known.

    Returns:
        None where one of the two is not known.
    """
    if len(weeks) < 2 or weeks[-1] is None or weeks[-2] is None:
        return None
    before, now = weeks[-2], weeks[-1]
    earlier = [
        abs(scale(b.share) - scale(a.share))
        for a, b in pairwise(weeks[:-1])
        if a is not None and b is not None and a.share is not None and b.share is not None
    ]
    low, high = now.share_low - before.share_high, now.share_high - before.share_low
    p = None
    if len(earlier) >= _LEAST:
        least = _least(before, now)
        p = (1 + sum(one >= least for one in earlier)) / (1 + len(earlier))
    return Change(low, high, p, len(earlier))


def by_chance(changes: Sequence[Change]) -> float:
    """How many of these would be significant if nothing but chance were at work."""
    return sum(
        int(LEVEL * (one.compared + 1)) / (one.compared + 1) for one in changes if one.p is not None
    )


def _least(before: Week, now: Week) -> float:
    """The smallest change that the bounds of both weeks allow."""
    if now.share_low > before.share_high:
        return scale(now.share_low) - scale(before.share_high)
    if now.share_high < before.share_low:
        return scale(before.share_low) - scale(now.share_high)
    return 0.0
