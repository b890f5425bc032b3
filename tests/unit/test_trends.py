"""Trends: what changed, where a new regime began, when a lag is gone."""

from __future__ import annotations

import datetime as dt
import math
import random

import pytest

from lakehouse.core.objective import Objective
from lakehouse.core.periods import micros
from lakehouse.core.subjects import Subject
from lakehouse.report.facts.objectives import weeks as facts
from lakehouse.report.facts.sections.capacity import drain
from lakehouse.slo import trends
from lakehouse.slo.sla_statement import Statement, Times
from lakehouse.slo.trends import LEVEL, Trend, Week, Weeks, by_chance, change, regimes

MONDAY = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
SECONDS = 604_800
END = MONDAY + dt.timedelta(days=7)
NAMES = [trends.name_of(one) for one in trends.weeks_until(END)]
MIN_ISR = Objective(
    "min-isr", "Enough replicas", "", "topic", "kafka.partition.unavailable", 0, 0.999
)


def named(number: int) -> str:
    return f"{MONDAY + number * dt.timedelta(days=7):%G-W%V}"


def week(seconds: float, number: int = 0, *, edge: float = 0, unknown: float = 0) -> Week:
    """A week with so many bad seconds, each bound so many seconds off."""
    seen = SECONDS - unknown
    bounds = (max(0.0, seconds - edge), seconds + edge)
    return Week(
        SECONDS * 1_000_000,
        round(seconds * 1e6), round(bounds[0] * 1e6), round(bounds[1] * 1e6), round(unknown * 1e6),
        seconds / seen if seen else None, bounds[0] / SECONDS, (bounds[1] + unknown) / SECONDS,
        name=named(number),
    )  # fmt: skip


def history(*seconds: float | None, edge: float = 0) -> list[Week | None]:
    return [None if s is None else week(s, n, edge=edge) for n, s in enumerate(seconds)]


USUAL = (600, 900, 500, 700, 800, 650, 900, 600, 750, 700, 820, 640)


def test_a_week_far_worse_than_weeks_differ_is_worse():
    told = change(history(*USUAL, 36_000))
    assert told is not None
    assert told.p == pytest.approx(1 / 12)
    assert told.verdict == "worse"
    assert told.share_low == pytest.approx((36_000 - 640) / SECONDS)


def test_a_week_like_the_others_is_as_usual():
    told = change(history(*USUAL, 900))
    assert told is not None
    assert told.verdict == "as_usual"


def test_a_better_week_after_bad_ones_is_better():
    told = change(history(*(60 * one for one in USUAL), 40))
    assert told is not None
    assert told.verdict == "better"


def test_a_change_within_the_bounds_is_none():
    told = change(history(*USUAL[:-1], 640, 660, edge=15))
    assert told is not None
    assert told.verdict == "within_bounds"
    assert told.p == 1


def test_the_change_is_taken_as_small_as_the_bounds_allow():
    wide = [*history(*USUAL), week(36_000, 12, edge=35_000)]
    told = change(wide)
    assert told is not None
    assert told.p is not None
    assert told.p > LEVEL


def test_nothing_is_said_where_one_of_the_two_weeks_is_not_known():
    assert change(history(*USUAL, None)) is None
    assert change(history(*USUAL[:-1], None, 36_000)) is None


def test_too_few_weeks_are_not_tested():
    told = change(history(*USUAL[:6], 36_000))
    assert told is not None
    assert (told.p, told.verdict) == (None, "untested")


def _null(kind: str, rng: random.Random) -> list[float]:
    level, found = 0.0, []
    for _ in range(13):
        if kind == "sparse":
            found.append(rng.lognormvariate(6, 1) if rng.random() < 0.3 else 0.0)
            continue
        level = (0.6 if kind == "dependent" else 0.0) * level + rng.gauss(0, 1)
        found.append(600 * math.exp(level))
    return found


@pytest.mark.parametrize("kind", ["independent", "dependent", "sparse"])
def test_by_chance_alone_no_more_is_significant_than_is_said(kind):
    rng = random.Random(kind)
    told = [change(history(*_null(kind, rng))) for _ in range(1500)]
    found = [one for one in told if one is not None]
    significant = sum(one.verdict in ("worse", "better") for one in found)
    expected = by_chance(one.compared for one in found if one.p is not None)
    assert expected == pytest.approx(1500 / 12)
    assert significant < 1.25 * expected


def test_a_new_regime_is_marked_where_it_begins():
    (mark,) = regimes(history(*(60, 80, 50, 70, 65, 75, 62), *(6000, 5000, 7000, 5500, 6500, 5800)))
    assert mark.week == named(7)
    assert mark.share_before == pytest.approx(66 / SECONDS, rel=0.01)
    assert mark.share_after > 50 * mark.share_before
    assert mark.p <= 0.01


def test_two_regimes_are_marked_in_order():
    rising = (*[60, 80, 50, 70] * 2, *[6_000, 5_000, 7_000] * 2, *[90_000, 60_000, 80_000] * 2)
    marks = regimes(history(*rising))
    assert [mark.week for mark in marks] == [named(8), named(14)]


def test_weeks_that_are_alike_have_no_regime():
    assert regimes(history(*USUAL, 720)) == []
    assert regimes(history(*[0] * 13)) == []


def test_a_regime_that_the_bounds_do_not_show_is_none():
    assert regimes(history(*[60] * 7, *[80] * 6)) != []
    assert regimes(history(*[60] * 7, *[80] * 6, edge=15)) == []


def test_a_week_of_which_less_than_half_was_seen_is_not_known():
    trend = Trend(
        MIN_ISR, _topic("t"), (week(10, unknown=200_000), week(10, unknown=400_000), None)
    )
    assert [one is not None for one in trend.known] == [True, False, False]


def test_a_lag_that_falls_is_gone_at_its_slope():
    hours = [(float(-24 + n), 24e9 - n * 1e9 + (n % 3) * 1e7) for n in range(24)]
    told = drain(hours, 1e9)
    assert told.verdict == "draining"
    seconds = told.seconds(told.slope)
    assert seconds == pytest.approx(3600, rel=0.05)
    steep, slow = told.seconds(told.slope_low), told.seconds(told.slope_high)
    assert steep is not None
    assert slow is not None
    assert steep <= seconds <= slow


def test_a_lag_that_grows_is_never_gone():
    told = drain([(float(n), 1e9 * n) for n in range(24)], 24e9)
    assert told.verdict == "growing"
    assert told.seconds(told.slope_high) is None


def test_a_lag_that_only_wavers_may_never_be_gone():
    """The bounds are of nine in ten: one in ten is sure though nothing is."""
    rng = random.Random(3)
    told = [
        drain([(float(n), 1e9 + rng.gauss(0, 1e8)) for n in range(24)], 1e9) for _ in range(200)
    ]
    standing = [one for one in told if one.verdict == "standing"]
    assert len(standing) > 0.85 * len(told)
    assert all(one.seconds(one.slope_high) is None for one in standing)


def test_too_few_hours_tell_no_slope():
    assert drain([(0.0, 1e9), (1.0, 5e8)], 5e8).verdict == "unknown"
    assert drain([], 0.0).verdict == "empty"


def _topic(name: str) -> Subject:
    return Subject("c", "topic", name, None, None, None, None, 0, 1)


def _statement(name: str, bad: float, unknown: float = 0) -> Statement:
    bad_us = round(bad * 1e6)
    good_us = round((SECONDS - bad - unknown) * 1e6)
    times = Times(good_us, bad_us, bad_us, bad_us) if good_us or bad_us else Times()
    return Statement(MIN_ISR, _topic(name), SECONDS * 1_000_000, times)


def _trends(found: dict[str, list[float | None]], unknown: float = 0) -> list[Trend]:
    """Trends of topics; None is a week in which nobody saw anything."""
    periods = trends.weeks_until(END)
    stated = [
        [
            _statement(name, 0, SECONDS) if (bad := weekly[number]) is None
            else _statement(name, bad, unknown)
            for name, weekly in found.items()
        ]
        for number in range(len(periods))
    ]  # fmt: skip
    return trends.join(Weeks(periods, stated), micros(END))


def test_the_facts_are_of_thirteen_weeks_worst_subject_first():
    found = _trends({"calm": [0.0] * 13, "bad": [*map(float, USUAL), 36_000.0], "some": [5.0] * 13})
    told = facts.section(found, [MIN_ISR], NAMES)
    assert (told.weeks[0], told.weeks[-1]) == ("2026-W35", "2026-W47")
    (objective,) = told.objectives
    assert objective.never_bad == 1
    assert [row.topic for row in objective.subjects] == ["bad", "some"]
    worst = objective.subjects[0]
    assert worst.change is not None
    assert worst.change.verdict == "worse"
    assert worst.weeks[-1] is not None
    assert worst.weeks[-1].share == pytest.approx(36_000 / SECONDS)
    assert told.tested == 2


def test_a_week_without_data_stays_unknown_and_is_never_zero():
    silent: list[float | None] = [*map(float, USUAL), None]
    told = facts.section(_trends({"t": silent}), [MIN_ISR], NAMES)
    row = told.objectives[0].subjects[0]
    last = row.weeks[-1]
    assert last is not None
    assert (last.share, last.unknown_us) == (None, SECONDS * 1_000_000)
    assert (last.share_low, last.share_high) == (0.0, 1.0)
    assert row.change is None


def test_a_week_that_is_not_over_is_not_compared():
    periods = trends.weeks_until(END)
    stated = [[_statement("t", bad)] for bad in (*USUAL, 36_000)]
    (trend,) = trends.join(Weeks(periods, stated), micros(END) - 1)
    assert trend.weeks[-1] is not None
    assert trend.known[-1] is None


def test_the_last_week_is_that_in_which_the_period_ends():
    assert trends.weeks_until(END)[-1].start == MONDAY
    assert trends.weeks_until(END + dt.timedelta(microseconds=1))[-1].start == END
    first = trends.weeks_until(END)[0]
    assert first.start == MONDAY - 12 * dt.timedelta(days=7)
    assert first.grain == "1w"
