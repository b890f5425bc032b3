"""The weeks ahead: a level that drifts, seen through noise (statsmodels' local level).

bench/forecast.py compares it with others, and with "as last week". The model needs no week to be
there: it becomes less sure over those that are missing. What is forecast is the share of the time
that will be seen; of what nobody sees nobody can say anything beforehand.
"""

from __future__ import annotations

import importlib.util
import math
import warnings
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse.trends.weeks import scale, share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.trends.weeks import Week

AHEAD: Final = 4
LEVEL: Final = 0.8
NAME: Final = "local level (statsmodels)"
_LEAST: Final = 6
"""Known weeks: of fewer neither level nor noise can be told."""

_FITTED: Final = 2
"""The variances of level and noise: what is fitted to the weeks does not vouch for them."""


class Forecast(NamedTuple):
    """One week ahead; shares of time, 0 to 1.

    Attributes:
        share: As likely to be exceeded as not.
        share_low: Exceeded nine times in ten.
        share_high: Exceeded once in ten.
    """

    share: float
    share_low: float
    share_high: float


class Ahead(NamedTuple):
    """One week ahead on the scale of weeks: the middle, and the bounds of four in five."""

    low: float
    middle: float
    high: float


def forecaster() -> Callable[[Sequence[Week | None]], list[Forecast]] | None:
    """How weeks are forecast; None where jmxlake[trends] is not installed."""
    return None if importlib.util.find_spec("statsmodels") is None else forecast


def forecast(weeks: Sequence[Week | None]) -> list[Forecast]:
    """The weeks after these; nothing where too few of them are known.

    Bounds count: the outermost of a past as it was seen, at its least and at its most.
    """
    if sum(week is not None for week in weeks) < _LEAST:
        return []
    told = [
        ahead([None if week is None else scale(week.of_seen(getattr(week, bad))) for week in weeks])
        for bad in ("bad_us", "bad_low_us", "bad_high_us")
    ]
    return [_together(*of_week) for of_week in zip(*told, strict=True)]


def ahead(values: Sequence[float | None], weeks: int = AHEAD) -> list[Ahead]:
    """So many weeks after these, all on the scale of weeks; None is a week that is not known.

    Fitted to a dozen weeks, variances come out too small: they are corrected for what was fitted,
    and the bounds are Student's.
    """
    from scipy.stats import t  # noqa: PLC0415 - optional, and slow to import
    from statsmodels.tsa.statespace.structural import UnobservedComponents  # noqa: PLC0415

    told = [value for value in values if value is not None]
    if max(told) == min(told):  # there is no noise to be told, and a fit would fail
        return [Ahead(told[0], told[0], told[0])] * weeks
    known = [math.nan if value is None else value for value in values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a fit did not settle: it is as good as it gets
        fitted = UnobservedComponents(known, level="llevel").fit(disp=0)
        frame = fitted.get_forecast(weeks).summary_frame()
    left = len(told) - _FITTED
    reach = float(t.ppf((1 + LEVEL) / 2, left)) * math.sqrt(len(told) / left)
    return [
        Ahead(middle - reach * error, middle, middle + reach * error)
        for middle, error in zip(
            map(float, frame["mean"]), map(float, frame["mean_se"]), strict=True
        )
    ]


def _together(usual: Ahead, least: Ahead, most: Ahead) -> Forecast:
    low, high = min(least.low, usual.low), max(most.high, usual.high)
    return Forecast(share_of(usual.middle), share_of(low), share_of(high))
