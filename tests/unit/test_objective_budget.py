"""The one status of an objective, and the share of its error budget that was used."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from lakehouse.core.objective import Events, Objective
from lakehouse.core.periods import HOUR_US, Period
from lakehouse.core.subjects import Subject
from lakehouse.report.facts.objectives.statement_rows import STATUSES, with_budgets
from lakehouse.report.facts.objectives.verdicts import objective as row_of
from lakehouse.slo.sla_statement import Counts, Statement, Times
from lakehouse.slo.sums import left_by_hour

if TYPE_CHECKING:
    from lakehouse.core.objective import Unknown

START = 1_795_000_000_000_000 // HOUR_US * HOUR_US
WEEK_US = 168 * HOUR_US
GOOD = ("met", "on_track")
MIN_ISR = Objective("min-isr", "Write availability", "", "topic", "m", 0, 0.999)


def topic(name: str) -> Subject:
    return Subject("c", "topic", name, None, None, None, None, START, START)


@st.composite
def statements(draw: st.DrawFn) -> Statement:
    """A statement as gold gives it: bounds around the bad time, and time that nobody saw."""
    unknown: Unknown = draw(st.sampled_from(("interval", "exclude", "good", "bad")))
    target = draw(st.sampled_from((0.9, 0.99, 0.999)))
    wanted = dataclasses.replace(MIN_ISR, unknown=unknown, target=target)
    expected = draw(st.integers(1, 168)) * HOUR_US
    seen = draw(st.integers(0, expected))
    bad = min(seen, draw(st.one_of(st.just(0), st.integers(0, expected // 50), st.just(seen))))
    low = draw(st.integers(0, bad))
    high = min(expected, bad + draw(st.integers(0, HOUR_US)))
    ahead = draw(st.sampled_from((0, HOUR_US, 50 * HOUR_US)))
    times = Times(seen - bad, bad, low, high)
    period = Period.of((START, START + WEEK_US))
    return Statement(wanted, topic("t"), expected, times, period, ahead)


def budget_of(*of: Statement, running: bool = False, floor: float = 0.0) -> dict[str, Any]:
    (row,) = with_budgets([row_of(of[0].objective, of)], running=running, floor=floor)
    return row


@given(statements())
def test_the_used_share_is_within_its_bounds(one: Statement) -> None:
    row = budget_of(one)
    if row["used"] is None:
        assert (row["used_low"], row["used_high"]) == (None, None)
        assert one.attainment is None or one.budget_of_window_us == 0
    else:
        assert row["used_low"] <= row["used"] <= row["used_high"]


@given(statements())
def test_over_a_window_that_is_over_the_status_is_the_verdict(one: Statement) -> None:
    row = budget_of(dataclasses.replace(one, ahead_us=0))
    assert row["status"] == one.verdict
    if one.objective.unknown == "interval" and row["used"] is not None:
        rounding = 1 / one.budget_us
        assert (one.verdict == "missed") <= (row["used_low"] > 1 - rounding)
        assert (one.verdict == "met") <= (row["used_high"] <= 1 + rounding)


@given(statements())
def test_a_running_window_is_never_met_and_missed_for_certain_only(one: Statement) -> None:
    row = budget_of(one, running=True)
    assert row["status"] != "met"
    as_bad = one.unknown_us if one.objective.unknown == "bad" else 0
    if one.attainment is not None:
        certain = one.times.bad_low_us + as_bad > one.budget_of_window_us
        assert (row["status"] == "missed") == certain
    if row["status"] == "on_track":
        assert row["used"] is None or row["used"] <= 1
        assert one.times.bad_us + as_bad <= one.budget_us


@given(statements(), st.booleans(), st.sampled_from(("attainment", "bad_us", "bad_low_us",
       "bad_high_us", "unknown_us", "verdict", "budget_of_window_us")))  # fmt: skip
def test_no_figure_that_is_not_known_makes_a_status_good(
    one: Statement,
    running: bool,  # noqa: FBT001 - hypothesis gives it
    key: str,
) -> None:
    row = row_of(one.objective, [one])
    whole = budget_of(one, running=running)
    row["subjects"][0][key] = None
    (told,) = with_budgets([row], running=running, floor=0)
    assert told["status"] not in GOOD or told["status"] == whole["status"]
    if key in ("attainment", "bad_us", "bad_high_us", "bad_low_us"):
        assert told["used"] is None


@given(st.lists(statements(), min_size=1, max_size=4), st.booleans())
def test_the_worst_subject_decides(
    several: list[Statement],
    running: bool,  # noqa: FBT001 - hypothesis gives it
) -> None:
    first = several[0].objective
    own = [dataclasses.replace(one, objective=first) for one in several]
    row = budget_of(*own, running=running)
    statuses = [subject["status"] for subject in row["subjects"]]
    assert statuses == sorted(statuses, key=STATUSES.index)
    assert row["status"] == statuses[0]
    assert row["used"] == row["subjects"][0]["used"]


def test_below_the_floor_nothing_good_is_said() -> None:
    wanted = dataclasses.replace(MIN_ISR, unknown="exclude")
    times = Times(HOUR_US, 0, 0, 0)
    one = Statement(wanted, topic("t"), WEEK_US, times, Period.of((START, START + WEEK_US)))
    assert one.verdict == "met"
    assert budget_of(one, floor=50)["status"] == "no_data"
    assert budget_of(one, floor=50, running=True)["status"] == "no_data"
    missed = dataclasses.replace(one, times=Times(0, HOUR_US, HOUR_US, HOUR_US))
    assert budget_of(missed, floor=50)["status"] == "missed", "what is certain is always said"


def test_an_objective_without_subjects_has_no_data() -> None:
    (row,) = with_budgets([row_of(MIN_ISR, [])], running=False, floor=50)
    assert (row["status"], row["used"], row["budget_whole_us"]) == ("no_data", None, None)


@pytest.mark.parametrize(("ahead", "used"), [(0, 2.0), (WEEK_US, 1.0)])
def test_events_use_a_share_of_those_that_may_be_bad(ahead: int, used: float) -> None:
    wanted = dataclasses.replace(MIN_ISR, events=Events("bad", are_good=False, total="all"))
    counts = Counts(good=998, total=1000, seen_us=WEEK_US // 2)
    one = Statement(
        wanted, topic("t"), WEEK_US, counts.times(WEEK_US), None, ahead, counts=counts
    )  # fmt: skip
    row = budget_of(one)
    assert row["used"] == pytest.approx(used)
    assert row["used_low"] <= row["used"] <= row["used_high"]


@given(statements(), st.data())
def test_what_is_left_ends_with_the_rest_of_the_budget(one: Statement, data: st.DataObject) -> None:
    so_far = data.draw(st.integers(1, 168))
    at = st.integers(START, START + so_far * HOUR_US - 1)
    cuts = sorted(data.draw(st.lists(st.integers(0, one.times.bad_us), max_size=5)))
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, one.times.bad_us], strict=True)]
    bad = sorted((data.draw(at), us) for us in parts)
    left = left_by_hour(one, bad, START + so_far * HOUR_US)
    if one.objective.unknown == "bad" or one.budget_of_window_us == 0:
        assert left is None
        return
    assert left is not None
    assert len(left) == so_far
    assert list(left) == sorted(left, reverse=True)
    row = budget_of(one)
    if row["used"] is not None:
        assert left[-1] == pytest.approx(1 - row["used"], abs=6e-5)


def test_bad_time_counts_in_the_hour_in_which_its_row_ends() -> None:
    times = Times(WEEK_US - HOUR_US, HOUR_US // 2, 0, 0)
    one = Statement(MIN_ISR, topic("t"), WEEK_US, times, Period.of((START, START + WEEK_US)))
    whole = one.budget_of_window_us
    left = left_by_hour(one, [(START + HOUR_US - 1, whole), (START + HOUR_US, whole)], START + 2)
    assert left == (-1.0,), "what is later than now is not cut off"
    left = left_by_hour(
        one, [(START + HOUR_US - 1, whole), (START + HOUR_US, whole)], START + WEEK_US
    )
    assert left is not None
    assert left[:2] == (0.0, -1.0)
