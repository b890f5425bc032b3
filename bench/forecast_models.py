"""Forecasts of the weeks ahead, each by another model of a library, on the scale of trends."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lakehouse.slo.trends.forecast import LEVEL, Ahead, ahead

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_REACH: Final = NormalDist().inv_cdf((1 + LEVEL) / 2)


def seasonal_naive(weeks: Sequence[float | None], count: int) -> list[Ahead]:
    """As last week: what repeats every seven days sums up to just that."""
    told = [week for week in weeks if week is not None]
    changes = [(b - a) ** 2 for a, b in pairwise(told)]
    spread = math.sqrt(sum(changes) / len(changes))
    return [
        Ahead(told[-1] - _REACH * spread * h**0.5, told[-1], told[-1] + _REACH * spread * h**0.5)
        for h in range(1, count + 1)
    ]


def mean(weeks: Sequence[float | None], count: int) -> list[Ahead]:
    """As all weeks on the mean."""
    told = np.array([week for week in weeks if week is not None])
    middle, spread = float(told.mean()), float(told.std(ddof=1))
    reach = _REACH * spread * math.sqrt(1 + 1 / len(told))
    return [Ahead(middle - reach, middle, middle + reach)] * count


def _statsforecast(name: str, **settings: Any) -> Callable[[Sequence[float | None], int], Any]:
    def forecast(weeks: Sequence[float | None], count: int) -> list[Ahead]:
        from statsforecast import models  # noqa: PLC0415

        told = np.array([week for week in weeks if week is not None])
        percent = round(100 * LEVEL)
        found = getattr(models, name)(**settings).forecast(told, count, level=[percent])
        return _ahead(found["mean"], found[f"lo-{percent}"], found[f"hi-{percent}"])

    return forecast


def _ahead(middle: Any, low: Any, high: Any) -> list[Ahead]:
    return [Ahead(*map(float, one)) for one in zip(low, middle, high, strict=True)]


MODELS: Final[dict[str, Callable[[Sequence[float | None], int], list[Ahead]]]] = {
    "seasonal naive": seasonal_naive,
    "mean of all weeks": mean,
    "statsmodels local level": ahead,
    "statsforecast AutoETS": _statsforecast("AutoETS", season_length=1),
    "statsforecast AutoTheta": _statsforecast("AutoTheta", season_length=1),
    "statsforecast AutoARIMA": _statsforecast("AutoARIMA", season_length=1),
}
