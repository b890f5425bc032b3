"""How the room on a disk changes, and when none will be left.

It goes on with the slope of Theil and Sen: the median of the slopes between any two points, which
no single burst can move. Its bounds are Sen's, widened for points that depend on those before them
(as Hamed and Rao do for the related trend test, here by the first autocorrelation alone).
"""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import NormalDist, median
from typing import Final, NamedTuple

_LEAST_POINTS: Final = 6
_LEVEL: Final = 0.9
_HOUR_SECONDS: Final = 3600

Point = tuple[float, float]
"""Hours since some instant, and the amount that was left then."""


class Drain(NamedTuple):
    """How an amount goes on; 90 % bounds.

    Attributes:
        last: The amount now.
        slope: Its change per second, negative while it drains; None: too few points are known.
        slope_low: Its lower bound.
        slope_high: Its upper bound.
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
        """Seconds until nothing is left, at a slope; None: never, or not known."""
        if self.last <= 0:
            return 0.0
        return None if slope is None or slope >= 0 else self.last / -slope


def drain(points: Sequence[Point], last: float) -> Drain:
    """How an amount goes on.

    Args:
        points: The last points, in order, without the unknown ones.
        last: The amount now.
    """
    if len(points) < _LEAST_POINTS:
        return Drain(last)
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2))
    count = len(points)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18 * _widening(points, slopes))
    reach = NormalDist().inv_cdf((1 + _LEVEL) / 2) * deviation
    first = max(0, math.floor((len(slopes) - reach) / 2))
    end = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    per_hour = (median(slopes), slopes[first], slopes[end])
    return Drain(last, *(slope / _HOUR_SECONDS for slope in per_hour))


def _widening(points: Sequence[Point], slopes: Sequence[float]) -> float:
    """The factor by which the variance grows because points depend on those before them."""
    slope = median(slopes)
    rest = [value - slope * at for at, value in points]
    middle = median(rest)
    off = [value - middle for value in rest]
    spread = math.fsum(value * value for value in off)
    if not spread:
        return 1.0
    correlation = math.fsum(a * b for a, b in pairwise(off)) / spread
    correlation = min(max(correlation, 0.0), 0.9)
    return (1 + correlation) / (1 - correlation)
