"""Burn rates, and what is said of them where not all was seen."""

from __future__ import annotations

import pytest

from lakehouse.core import periods
from lakehouse.core.objective import Objective, Slices
from lakehouse.core.subjects import Subject
from lakehouse.slo.burn_rate import LENGTHS_US, PAIRS, Alert, Rate
from lakehouse.slo.sla_statement import Statement, Sums, Times, build
from lakehouse.slo.sli_query import PERIOD, Lifetime, Query

MINUTE = 60_000_000
HOUR = 60 * MINUTE
WINDOW = 5 * MINUTE
WEEK = periods.week("2026-W47")
END = periods.micros(WEEK.end)
TOPIC = Subject("c", "topic", "t", None, None, None, None, 0, END)
FAST, MIDDLE, SLOW = range(3)


def objective(target: float = 0.99, slices: Slices | None = None) -> Objective:
    return Objective("o", "", "", "topic", "m", 0.0, target, slices=slices)


def _sums(times: dict[str, Times]) -> Sums:
    return Sums({("c", "o", TOPIC.key): times}, {})


def told(
    bad: dict[str, int], *, unknown: dict[str, int] | None = None, target: float = 0.99
) -> tuple[Alert, ...]:
    """Alerts at a week's end, where so much of each length was bad and so much unknown."""
    one = objective(target)
    asked = Query((one,), WEEK, WINDOW, LENGTHS_US, END)
    times = {PERIOD: Times(1)}
    for name, length in LENGTHS_US.items():
        own, hidden = bad.get(name, 0), (unknown or {}).get(name, 0)
        times[name] = Times(length - own - hidden, own, own, own)
    return build(asked, one, Lifetime(TOPIC, [(0, END)]), _sums(times)).alerts


def test_the_pairs_are_those_of_the_workbook():
    assert [tuple(pair) for pair in PAIRS] == [
        ("1h", "5m", 14.4), ("6h", "30m", 6.0), ("3d", "6h", 1.0),
    ]  # fmt: skip


def test_a_rate_of_one_uses_the_budget_up_in_the_window():
    alert = told({"3d": 72 * HOUR // 100, "6h": 6 * HOUR // 100})[SLOW]
    assert alert.long.rate == pytest.approx(1.0)
    assert alert.short.low == alert.short.high == pytest.approx(1.0)


def test_both_windows_must_burn():
    assert told({"1h": 9 * MINUTE, "5m": MINUTE})[FAST].verdict == "burning"
    assert told({"1h": 9 * MINUTE})[FAST].verdict == "calm", "it has ended"
    assert told({"5m": MINUTE, "1h": MINUTE})[FAST].verdict == "calm", "it does not matter yet"


def test_unknown_time_may_have_burnt():
    bad = {"1h": 9 * MINUTE}
    assert told(bad, unknown={"5m": MINUTE})[FAST].verdict == "uncertain"
    fast = told(bad, unknown={"5m": 5 * MINUTE})[FAST]
    assert (fast.verdict, fast.short.rate, fast.short.high) == ("no_data", None, None)
    assert fast.long.rate is not None
    low, high = fast.long.low, fast.long.high
    assert low is not None
    assert high is not None
    assert low <= fast.long.rate <= high


def test_no_alert_tells_of_slices_longer_than_its_windows():
    one = objective(slices=Slices(HOUR, 0.9))
    asked = Query((one,), WEEK, WINDOW, LENGTHS_US, END)
    assert set(asked.ranges) == {PERIOD, "1h", "6h", "3d"}
    alerts = build(asked, one, Lifetime(TOPIC, [(0, END)]), _sums({})).alerts
    assert [alert.verdict for alert in alerts] == ["no_data"] * 3


def test_lengths_end_with_the_last_whole_slice():
    one = objective(slices=Slices(HOUR, 0.9))
    until = END - 25 * MINUTE
    asked = Query((one,), WEEK, WINDOW, LENGTHS_US, until)
    assert asked.ranges["1h"] == (END - 2 * HOUR, END - HOUR)
    plain = Query((objective(),), WEEK, WINDOW, LENGTHS_US, until)
    assert plain.ranges["5m"] == (until - 5 * MINUTE, until)


def test_a_subject_that_is_younger_is_judged_since_it_exists():
    one = objective()
    asked = Query((one,), WEEK, WINDOW, LENGTHS_US, END)
    times = {"1h": Times(10 * MINUTE), "5m": Times(5 * MINUTE)}
    living = Lifetime(TOPIC, [(END - 10 * MINUTE, END)])
    fast = build(asked, one, living, _sums(times)).alerts[FAST]
    assert fast.long == Rate(0.0, 0.0, 0.0)


def test_budget_is_of_the_time_so_far_and_has_bounds():
    one = Statement(objective(), TOPIC, 60, Times(50, 5, 4, 6), WEEK, ahead_us=940)
    assert one.budget_us == 1
    assert one.figures()["budget_left_us"] == 1 - 5
    more = one.details()
    assert (more["budget_left_low_us"], more["budget_left_high_us"]) == (1 - 6 - 5, 1 - 4)
    assert (more["budget_of_window_us"], more["budget_of_window_left_us"]) == (10, 5)
