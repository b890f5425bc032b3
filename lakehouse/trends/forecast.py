"""The weeks ahead: a level that drifts, seen through noise (statsmodels' local level).

bench/forecast.py compares it with others, and with "as last week". The model needs no week to be
there: it becomes less sure over those that are missing. What is forecast is the share of the time
that will be seen; of what nobody sees nobody can say anything beforehand.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakehouse.trends.weeks import scale, share_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.trends.weeks import Week

AHEAD: Final = 4
LEVEL: Final = 0.8
NAME: Final = "local level (statsmodels)"
_Three = tuple[float, float, float]
_LEAST: Final = 6
"""Known weeks: of fewer neither level nor noise can be told."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """One week ahead; shares of time, 0 to 1.

    Attributes:
        share: As likely to be exceeded as not.
        low: Exceeded nine times in ten.
        high: Exceeded once in ten.
    """

    share: float
    low: float
    high: float


def forecaster() -> Callable[[Sequence[Week | None]], list[Forecast]] | None:
    """How weeks are forecast; None where jmxlake[trends] is not installed."""
    try:
        from statsmodels.tsa.statespace.structural import (  # noqa: PLC0415 - optional
            UnobservedComponents,
        )
    except ModuleNotFoundError:
        return None

    def forecast(weeks: Sequence[Week | None]) -> list[Forecast]:
        """The weeks after these; nothing where too few of them are known."""
        if sum(week is not None for week in weeks) < _LEAST:
            return []
        bounds = ("bad_us", "bad_low_us", "bad_high_us")
        told = [_ahead(UnobservedComponents, weeks, bound) for bound in bounds]
        return [_together(*of_week) for of_week in zip(*told, strict=True)]

    return forecast


def _together(usual: _Three, least: _Three, most: _Three) -> Forecast:
    """One week ahead of the past as it was seen, at its least and at its most."""
    low, high = min(least[0], usual[0]), max(most[2], usual[2])
    return Forecast(share_of(usual[1]), share_of(low), share_of(high))


def _ahead(model: Any, weeks: Sequence[Week | None], bound: str) -> list[_Three]:
    """Low, middle and high of the weeks ahead, of one bound of the past, on the scale."""
    values = [
        math.nan if week is None else scale(week.of_seen(getattr(week, bound))) for week in weeks
    ]
    told = [value for value in values if not math.isnan(value)]
    if max(told) == min(told):  # there is no noise to be told, and a fit would fail
        return [(told[0], told[0], told[0])] * AHEAD
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a fit did not settle: it is as good as it gets
        fitted = model(values, level="llevel").fit(disp=0)
        frame = fitted.get_forecast(AHEAD).summary_frame(alpha=1 - LEVEL)
    bounds = (frame["mean_ci_lower"], frame["mean"], frame["mean_ci_upper"])
    return [(float(a), float(b), float(c)) for a, b, c in zip(*bounds, strict=True)]
