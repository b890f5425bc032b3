"""When a lag will be gone, if it goes on as in the last hours.

The slope is that of Theil and Sen: the median of the slopes between any two hours, which no single
burst can move. Its bounds are Sen's, widened for hours that depend on those before them (as Hamed
and Rao do for the trend test it comes from, here by the first autocorrelation alone).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import NormalDist, median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

HOURS: Final = 24
_LEAST: Final = 6
_LEVEL: Final = 0.9
_HOUR_SECONDS: Final = 3600

Point = tuple[float, float]
"""Hours since some instant, and what waited then on the mean of that hour, bytes."""


@dataclass(frozen=True, slots=True)
class Drain:
    """How a lag goes on; 90 % bounds.

    Attributes:
        last: What waits now, bytes.
        slope: Bytes per second; below zero it drains. None: too few hours are known.
        slope_low: The least it may be.
        slope_high: The most.
    """

    last: float
    slope: float | None = None
    slope_low: float | None = None
    slope_high: float | None = None

    @property
    def verdict(self) -> str:
        """``empty``, ``draining``, ``growing``, ``standing`` or ``unknown``."""
        if self.last <= 0:
            return "empty"
        if self.slope_low is None or self.slope_high is None:
            return "unknown"
        if self.slope_high < 0:
            return "draining"
        return "growing" if self.slope_low > 0 else "standing"

    def seconds(self, slope: float | None) -> float | None:
        """Seconds until nothing waits, at a slope; None: never, or not known."""
        if self.last <= 0:
            return 0.0
        return None if slope is None or slope >= 0 else self.last / -slope


def drain(hours: Sequence[Point], last: float) -> Drain:
    """How what waits goes on.

    Args:
        hours: The last hours, in order; those that are not known are left out.
        last: What waits now, bytes.
    """
    if len(hours) < _LEAST:
        return Drain(last)
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(hours, 2))
    count = len(hours)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18 * _widening(hours, slopes))
    reach = NormalDist().inv_cdf((1 + _LEVEL) / 2) * deviation
    first = max(0, math.floor((len(slopes) - reach) / 2))
    end = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    found = (median(slopes), slopes[first], slopes[end])
    return Drain(last, *(slope / _HOUR_SECONDS for slope in found))


def _widening(hours: Sequence[Point], slopes: Sequence[float]) -> float:
    """By how much the variance grows because hours depend on those before them."""
    slope = median(slopes)
    rest = [value - slope * at for at, value in hours]
    middle = median(rest)
    off = [value - middle for value in rest]
    spread = math.fsum(value * value for value in off)
    if not spread:
        return 1.0
    alike = math.fsum(a * b for a, b in pairwise(off)) / spread
    alike = min(max(alike, 0.0), 0.9)
    return (1 + alike) / (1 - alike)
