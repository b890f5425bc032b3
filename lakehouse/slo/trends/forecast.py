"""The forecast of the share of bad time in the next weeks.

Weeks follow a level that drifts, seen through noise (statsmodels' local level); bench/forecast.py
compares it with other models, and with "as last week". The model allows missing weeks: it becomes
less certain over them. It forecasts the share of the time that will be seen.
"""

import importlib.util
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from lakehouse.slo.trends.weeks import Week, scale, share_of

AHEAD: Final = 4
LEVEL: Final = 0.8
NAME: Final = "local level (statsmodels)"
_LEAST_WEEKS: Final = 6
"""Known weeks: fewer do not determine level and noise."""

_FITTED: Final = 2
"""Parameters: the variances of level and noise. Each is a degree of freedom less."""


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
