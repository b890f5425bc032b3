"""Forecasts of weeks; they need jmxlake[trends]."""

from __future__ import annotations

import math
import random

import pytest

from lakehouse.slo.trends.forecast import AHEAD, ahead, forecast, forecaster
from lakehouse.slo.trends.weeks import scale
from tests.unit.test_trends import history

pytestmark = pytest.mark.slow

pytest.importorskip("statsmodels")


def test_a_steady_series_goes_on_within_bounds_that_hold_it():
    rng = random.Random(5)
    told = forecast(history(*(600 * math.exp(rng.gauss(0, 0.2)) for _ in range(13))))
    assert len(told) == AHEAD
    for one in told:
        assert one.share_low < one.share < one.share_high
        assert 400 < one.share * 604_800 < 900


def test_weeks_that_are_missing_are_no_zeros_and_make_it_less_sure():
    rng = random.Random(6)
    whole: list[float | None] = [8 + rng.gauss(0, 0.3) for _ in range(13)]
    with_hole = [*whole[:-3], None, None, None]
    (first, *_), (after_hole, *_) = ahead(whole), ahead(with_hole)
    assert abs(after_hole.middle - 8) < 0.5
    assert after_hole.high - after_hole.low > first.high - first.low


def test_weeks_without_any_noise_go_on_as_they_are():
    told = forecast(history(*[0.0] * 13))
    assert [tuple(one) for one in told] == [(0, 0, 0)] * AHEAD


def test_the_bounds_of_the_past_widen_those_of_the_future():
    rng = random.Random(7)
    weeks = [600 * math.exp(rng.gauss(0, 0.2)) for _ in range(13)]
    exact, doubtful = forecast(history(*weeks)), forecast(history(*weeks, edge=300))
    assert doubtful[0].share == pytest.approx(exact[0].share)
    assert doubtful[0].share_high > exact[0].share_high
    assert doubtful[0].share_low < exact[0].share_low


def test_of_too_few_weeks_nothing_is_forecast():
    assert forecast(history(*[None] * 8, *[600.0] * 5)) == []
    assert forecaster() is forecast


def test_four_in_five_weeks_lie_within():
    """Of series that are what the model takes them for."""
    rng, held, count = random.Random(8), 0, 150
    for _ in range(count):
        level, values = scale(0.01), []
        for _ in range(14):
            level += rng.gauss(0, 0.1)
            values.append(level + rng.gauss(0, 0.4))
        one = ahead(values[:13], 1)[0]
        held += one.low <= values[13] <= one.high
    assert 0.7 < held / count < 0.9
