"""Where a new regime begins: from some week on all weeks are of another size.

A series is cut where the means of both sides differ most, for their spread and number. Whether that
is more than chance is asked by shuffling the weeks: *p* is the share of orders, the real one among
them, that have a cut as good. Each side is then looked at in the same way. Days and hours within a
week depend on one another, and stay together; weeks that do as well make cuts look better than they
are, so the level is strict.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.trends.weeks import Week, scale

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL: Final = 0.01
_ORDERS: Final = 399
_LEAST: Final = 3
"""Weeks on either side: fewer are an exception, not a regime."""

_SEED: Final = 164
"""The same weeks have the same regimes, whoever asks."""


class Regime(NamedTuple):
    """A new regime; shares of time.

    Attributes:
        week: The first week of it, by its name.
        share_before: Mean share of the weeks before, back to the regime before.
        share_after: Mean share from then on.
        p: Share of all orders of these weeks that show as much, 0 to 1.
    """

    week: str
    share_before: float
    share_after: float
    p: float


def regimes(weeks: Sequence[Week | None]) -> list[Regime]:
    """The new regimes, oldest first; weeks that are not known are left out."""
    told = [week for week in weeks if week is not None and week.share is not None]
    cuts = sorted(_cuts(told, 0, len(told)))
    edges = [0, *(number for number, _ in cuts), len(told)]
    found = []
    for nth, (number, p) in enumerate(cuts):
        before, after = told[edges[nth] : number], told[number : edges[nth + 2]]
        found.append(Regime(told[number].name, _mean(before), _mean(after), p))
    return found


def _cuts(weeks: Sequence[Week], first: int, end: int) -> list[tuple[int, float]]:
    some = weeks[first:end]
    if len(some) < 2 * _LEAST:
        return []
    values = [scale(week.share or 0.0) for week in some]
    best, at = _best(values)
    if not best or not _apart(some[:at], some[at:]):
        return []
    shuffle = random.Random(_SEED)  # noqa: S311 - no secret
    as_good = 0
    for _ in range(_ORDERS):
        shuffle.shuffle(values)
        as_good += _best(values)[0] >= best
    p = (1 + as_good) / (1 + _ORDERS)
    if p > LEVEL:
        return []
    middle = first + at
    return [*_cuts(weeks, first, middle), (middle, p), *_cuts(weeks, middle, end)]


def _best(values: Sequence[float]) -> tuple[float, int]:
    """How well the best cut divides the values, and where: CUSUM, weighed by the sides' lengths."""
    count, total = len(values), math.fsum(values)
    best, at, so_far = 0.0, 0, math.fsum(values[: _LEAST - 1])
    for number in range(_LEAST, count - _LEAST + 1):
        so_far += values[number - 1]
        off = abs(so_far - total * number / count) / math.sqrt(number * (count - number) / count)
        if off > best * (1 + 1e-12):
            best, at = off, number
    return best, at


def _apart(before: Sequence[Week], after: Sequence[Week]) -> bool:
    """Whether the means differ wherever the truth of each week lies within its bounds."""
    lows, highs = (
        [math.fsum(getattr(week, bound) for week in some) / len(some) for some in (before, after)]
        for bound in ("share_low", "share_high")
    )
    return lows[0] > highs[1] or lows[1] > highs[0]


def _mean(weeks: Sequence[Week]) -> float:
    return math.fsum(week.share or 0.0 for week in weeks) / len(weeks)
