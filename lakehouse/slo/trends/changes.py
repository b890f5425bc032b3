"""Changes between weeks: from the last week but one to the last, and to a new regime.

Both are tests of chance on the scale of weeks. Weeks are not independent, and both tests account
for it: the last change is compared with earlier changes, which have the same dependence, and the
level for regimes is strict. Bounds count too: a change is significant only if it is so wherever the
truth of each week lies within its bounds.
"""

import math
import random
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final, NamedTuple

from lakehouse.slo.trends.weeks import Week, scale

LEVEL: Final = 0.1
"""Twelve changes, of which this week's is the largest: p = 1/12. Thirteen weeks give no less."""

_LEAST_CHANGES: Final = 9
"""With fewer changes to compare with, no change could be significant: there is no test."""

_REGIME_LEVEL: Final = 0.01
_PERMUTATIONS: Final = 399
_LEAST_WEEKS: Final = 3
"""Weeks on either side: fewer are an exception, not a regime."""

_SEED: Final = 164
"""Fixed, so that the same weeks always have the same regimes."""


class Change(NamedTuple):
    """The change from one week to the next; shares of time, more is worse.

    Attributes:
        share_low: The least increase of the share.
        share_high: The greatest increase.
        p: Share of the changes, this one included, that are as large, 0 to 1; None without a test.
        compared: Number of earlier changes.
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

    It is a rank test: its ``p`` is the rank of this change among those between neighbouring weeks
    before, so it needs no assumption on how incidents are distributed.

    Args:
        weeks: Oldest first; None where one is not known.

    Returns:
        None where one of the two is not known.
    """
    if len(weeks) < 2 or weeks[-1] is None or weeks[-2] is None:
        return None
    before, now = weeks[-2], weeks[-1]
    shares = [None if week is None else week.share for week in weeks[:-1]]
    scaled = [None if share is None else scale(share) for share in shares]
    earlier = [abs(b - a) for a, b in pairwise(scaled) if a is not None and b is not None]
    low, high = now.share_low - before.share_high, now.share_high - before.share_low
    p = None
    if len(earlier) >= _LEAST_CHANGES:
        # The smallest change that the bounds of both weeks allow.
        up = scale(now.share_low) - scale(before.share_high)
        down = scale(before.share_low) - scale(now.share_high)
        least = max(0.0, up, down)
        p = (1 + sum(size >= least for size in earlier)) / (1 + len(earlier))
    return Change(low, high, p, len(earlier))


def by_chance(compared: Iterable[int]) -> float:
    """The expected number of significant changes if all were by chance.

    Args:
        compared: Of each change that was tested, the number of earlier changes.
    """
    return sum(int(LEVEL * (earlier + 1)) / (earlier + 1) for earlier in compared)


class Regime(NamedTuple):
    """A new regime: from some week on all weeks have another size; shares of time.

    Attributes:
        week: The name of its first week.
        share_before: Mean share of the weeks before, back to the regime before.
        share_after: Mean share from then on.
        p: Share of all permutations of these weeks that have a cut as good, 0 to 1.
    """

    week: str
    share_before: float
    share_after: float
    p: float


def regimes(weeks: Sequence[Week | None]) -> list[Regime]:
    """The new regimes, oldest first; unknown weeks are left out.

    Weeks are cut where the means of both sides differ most, relative to their spread and number
    (CUSUM). A permutation test decides whether the cut is more than chance; then each side is cut
    in the same way.
    """
    known = [week for week in weeks if week is not None and week.share is not None]
    cuts = sorted(_cuts(known, 0, len(known)))
    edges = [0, *(number for number, _ in cuts), len(known)]
    result = []
    for nth, (number, p) in enumerate(cuts):
        sides = (known[edges[nth] : number], known[number : edges[nth + 2]])
        before, after = (fmean(week.share or 0.0 for week in side) for side in sides)
        result.append(Regime(known[number].name, before, after, p))
    return result


def _cuts(weeks: Sequence[Week], first: int, end: int) -> list[tuple[int, float]]:
    part = weeks[first:end]
    if len(part) < 2 * _LEAST_WEEKS:
        return []
    values = [scale(week.share or 0.0) for week in part]
    best, at = _best_cut(values)
    if not best or not _means_differ(part[:at], part[at:]):
        return []
    generator = random.Random(_SEED)  # noqa: S311 - no secret
    as_good = 0
    for _ in range(_PERMUTATIONS):
        generator.shuffle(values)
        as_good += _best_cut(values)[0] >= best
    p = (1 + as_good) / (1 + _PERMUTATIONS)
    if p > _REGIME_LEVEL:
        return []
    middle = first + at
    return [*_cuts(weeks, first, middle), (middle, p), *_cuts(weeks, middle, end)]


def _best_cut(values: Sequence[float]) -> tuple[float, int]:
    """How well the best cut divides the values, and its position; by CUSUM and the lengths."""
    count, total = len(values), math.fsum(values)
    best, at, running = 0.0, 0, math.fsum(values[: _LEAST_WEEKS - 1])
    for number in range(_LEAST_WEEKS, count - _LEAST_WEEKS + 1):
        running += values[number - 1]
        off = abs(running - total * number / count) / math.sqrt(number * (count - number) / count)
        if off > best * (1 + 1e-12):
            best, at = off, number
    return best, at


def _means_differ(before: Sequence[Week], after: Sequence[Week]) -> bool:
    """Whether the means differ wherever the truth of each week lies within its bounds."""
    lows, highs = (
        [fmean(getattr(week, bound) for week in side) for side in (before, after)]
        for bound in ("share_low", "share_high")
    )
    return lows[0] > highs[1] or lows[1] > highs[0]
