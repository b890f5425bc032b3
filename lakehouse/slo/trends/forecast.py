"""Forecasts: the share of bad time in the next weeks, and when a lag will be gone.

Weeks follow a level that drifts, seen through noise (statsmodels' local level); bench/forecast.py
compares it with other models, and with "as last week". The model allows missing weeks: it becomes
less certain over them. It forecasts the share of the time that will be seen.

A lag goes on with the slope of Theil and Sen: the median of the slopes between any two hours, which
no single burst can move. Its bounds are Sen's, widened for hours that depend on those before them
(as Hamed and Rao do for the related trend test, here by the first autocorrelation alone).
"""

import importlib.util
import math
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from statistics import NormalDist, median
from typing import Final, NamedTuple

from lakehouse.slo.trends.weeks import Week, scale, share_of

AHEAD: Final = 4
LEVEL: Final = 0.8
NAME: Final = "local level (statsmodels)"
_LEAST_WEEKS: Final = 6
"""Known weeks: fewer do not determine level and noise."""

_FITTED: Final = 2
"""Parameters: the variances of level and noise. Each is a degree of freedom less."""

HOURS: Final = 24
_LEAST_HOURS: Final = 6
_DRAIN_LEVEL: Final = 0.9
_HOUR_SECONDS: Final = 3600


class Forecast(NamedTuple):
    """The forecast of one week; shares of time, 0 to 1.

    Attributes:
        share: The median.
        share_low: Exceeded nine times in ten.
        share_high: Exceeded once in ten.
    """

    share: float
    share_low: float
    share_high: float


class Ahead(NamedTuple):
    """The forecast of one week on the scale of weeks: the middle, and bounds of four in five."""

    low: float
    middle: float
    high: float


def forecaster() -> Callable[[Sequence[Week | None]], list[Forecast]] | None:
    """The function that forecasts weeks; None where jmxlake[trends] is not installed."""
    return None if importlib.util.find_spec("statsmodels") is None else forecast


def forecast(weeks: Sequence[Week | None]) -> list[Forecast]:
    """The weeks after these; empty where too few of them are known.

    The bounds are the outermost of three forecasts: from the bad time as it was seen, and from its
    lower and upper bounds.
    """
    if sum(week is not None for week in weeks) < _LEAST_WEEKS:
        return []
    seen, low, high = (
        ahead([None if week is None else scale(week.of_seen(getattr(week, bad))) for week in weeks])
        for bad in ("bad_us", "bad_low_us", "bad_high_us")
    )
    outermost = (
        (usual.middle, min(least.low, usual.low), max(most.high, usual.high))
        for usual, least, most in zip(seen, low, high, strict=True)
    )
    return [Forecast(*map(share_of, scaled)) for scaled in outermost]


def ahead(values: Sequence[float | None], weeks: int = AHEAD) -> list[Ahead]:
    """The forecast of so many weeks after these, on the scale of weeks; None is an unknown week.

    Variances fitted to a dozen weeks are too small: they are corrected for the fitted parameters,
    and the bounds are Student's.
    """
    from scipy.stats import t  # noqa: PLC0415 - optional, and slow to import
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # noqa: PLC0415

    known = [value for value in values if value is not None]
    if max(known) == min(known):  # without noise a fit would fail
        return [Ahead(known[0], known[0], known[0])] * weeks
    series = [math.nan if value is None else value for value in values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that did not converge is still the best one
        fitted = UnobservedComponents(series, level="llevel").fit(disp=0)
        frame = fitted.get_forecast(weeks).summary_frame()
    freedom = len(known) - _FITTED
    reach = float(t.ppf((1 + LEVEL) / 2, freedom)) * math.sqrt(len(known) / freedom)
    return [
        Ahead(middle - reach * error, middle, middle + reach * error)
        for middle, error in frame[["mean", "mean_se"]].to_numpy().tolist()
    ]


Point = tuple[float, float]
"""Hours since some instant, and the mean lag of that hour, bytes."""


class Drain(NamedTuple):
    """How a lag goes on; 90 % bounds.

    Attributes:
        last: The lag now, bytes.
        slope: Bytes per second, negative while it drains; None: too few hours are known.
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
        """Seconds until the lag is gone, at a slope; None: never, or not known."""
        if self.last <= 0:
            return 0.0
        return None if slope is None or slope >= 0 else self.last / -slope


def drain(hours: Sequence[Point], last: float) -> Drain:
    """How a lag goes on.

    Args:
        hours: The last hours, in order, without the unknown ones.
        last: The lag now, bytes.
    """
    if len(hours) < _LEAST_HOURS:
        return Drain(last)
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(hours, 2))
    count = len(hours)
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18 * _widening(hours, slopes))
    reach = NormalDist().inv_cdf((1 + _DRAIN_LEVEL) / 2) * deviation
    first = max(0, math.floor((len(slopes) - reach) / 2))
    end = min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))
    per_hour = (median(slopes), slopes[first], slopes[end])
    return Drain(last, *(slope / _HOUR_SECONDS for slope in per_hour))


def _widening(hours: Sequence[Point], slopes: Sequence[float]) -> float:
    """The factor by which the variance grows because hours depend on those before them."""
    slope = median(slopes)
    rest = [value - slope * at for at, value in hours]
    middle = median(rest)
    off = [value - middle for value in rest]
    spread = math.fsum(value * value for value in off)
    if not spread:
        return 1.0
    correlation = math.fsum(a * b for a, b in pairwise(off)) / spread
    correlation = min(max(correlation, 0.0), 0.9)
    return (1 + correlation) / (1 - correlation)
