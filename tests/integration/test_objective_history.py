"""The weeks of objectives, what was left of their budgets by hour, and statuses, asked of gold."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from lakehouse import tables
from lakehouse.core import periods
from lakehouse.core.lake import Lake
from lakehouse.core.periods import Period, instant, micros
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts import report_json
from lakehouse.report.facts.build import facts
from lakehouse.slo import attainment
from lakehouse.slo.report_calendar import Calendar
from tests import gold_builder
from tests.integration.test_objectives import (
    END,
    EVERY,
    HOUR,
    LATE,
    PLAIN,
    READS,
    ROLLING,
    ROWS,
    START,
    WEEK,
    engine,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.core.objective import Objective
    from lakehouse.engines.engine import Engine
    from lakehouse.slo.sla_statement import Statement

__all__ = ["engine"]
BEFORE = periods.week("2024-W46")
BERLIN = Calendar("Europe/Berlin")


@pytest.fixture(scope="module")
def gold(engine: Engine) -> Engine:
    for table in tables.GOLD:
        gold_builder.put(engine.lake.root, table)
    return engine


def told(
    gold: Engine,
    objectives: Sequence[Objective],
    period: Period = WEEK,
    now_us: int = LATE,
    calendar: Calendar = Calendar(),  # noqa: B008 - it is frozen
) -> dict[str, Any]:
    made = facts(gold, objectives, period, now=instant(now_us), calendar=calendar)
    report_json.check_shape(made)
    return made


def named(made: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [one for one in made["objectives"] if one["name"] == name]
    row: dict[str, Any] = found
    return row


def bad_us(topic: str, within: Period) -> int:
    start, end = within.span
    return sum(bad for window, _, bad, *_ in ROWS[topic] if start <= window < end)


def statements(gold: Engine, objective: Objective, week: Period) -> list[Statement]:
    options = attainment.Options(own_windows=True)
    return attainment.read(gold, [objective], week, LATE, options=options)


def test_budget_left_is_budget_less_bad_time_so_far(gold: Engine) -> None:
    subject = named(told(gold, [PLAIN]), "plain")["subjects"][0]
    topic, whole = subject["topic"], subject["budget_of_window_us"]
    by_hour = [0] * 168
    for window, _, bad, *_ in ROWS[topic]:
        if window >= START:
            by_hour[(window - START) // HOUR] += bad
    left = [1 - sum(by_hour[: hour + 1]) / whole for hour in range(168)]
    assert subject["left"] == pytest.approx(left, abs=6e-5)


@pytest.mark.parametrize(
    "now_us", [pytest.param(LATE, marks=pytest.mark.nightly), START + 50 * HOUR + 1]
)
def test_history_in_slices_ends_with_the_budget_left(gold: Engine, now_us: int) -> None:
    made, compared = told(gold, EVERY, now_us=now_us), 0
    for row in made["objectives"]:
        for subject in row["subjects"]:
            if (left := subject.get("left")) is None:
                continue
            start, end = (micros(dt.datetime.fromisoformat(row[key])) for key in ("from", "to"))
            assert len(left) == -(-(min(end, now_us) - start) // HOUR), row["name"]
            if subject["used"] is not None:
                assert left[-1] == pytest.approx(1 - subject["used"], abs=6e-5), row["name"]
                compared += 1
    assert compared >= 9
    assert all("left" not in one for one in named(made, READS.name)["subjects"])


def test_a_running_week_is_judged_by_the_budget_of_all_of_it(gold: Engine) -> None:
    half = 84 * HOUR
    week = Period(instant(START + half), instant(END + half), periods.WEEK)
    made = told(gold, [PLAIN], week, END)
    assert (made["running"], made["elapsed"]) == (True, 0.5)
    row = named(made, "plain")
    old = next(one for one in row["subjects"] if one["topic"] == "old")
    assert old["budget_whole_us"] == round(0.01 * 168 * HOUR)
    assert old["used"] == old["bad_us"] / old["budget_whole_us"]
    assert row["status"] in ("missed", "at_risk", "uncertain", "no_data", "on_track")
    assert len(old["left"]) == 84
    assert {one["change"] for one in made["key_figures"]} == {"none"}


def test_weeks_before_are_sums_of_their_own_hours(gold: Engine) -> None:
    weeks = named(told(gold, [PLAIN]), "plain")["history"]
    assert [one["week"] for one in weeks] == [f"2024-W{number}" for number in range(40, 48)]
    assert [one["verdict"] for one in weeks[:3]] == ["no_data"] * 3, "before the first data"
    assert all(one["bad_us"] is None for one in weeks[:3])
    for one in weeks[3:7]:
        assert one["subject"]["topic"] == "old"
        assert one["bad_us"] == bad_us("old", periods.week(one["week"]))
        assert one["bad_low_us"] <= one["bad_us"] <= one["bad_high_us"]
        assert one["subjects"] == 1 + (one["week"] == "2024-W46"), "silent exists since W46"
    assert weeks[-1]["subjects"] == 3


def test_only_published_weeks_are_known_of_other_windows(gold: Engine) -> None:
    rolling = named(told(gold, [ROLLING]), "rolling")["history"]
    assert [one["verdict"] for one in rolling[:-1]] == ["no_data"] * 7
    attainment.publish(gold, statements(gold, ROLLING, BEFORE), BEFORE)
    row = named(told(gold, [ROLLING]), "rolling")
    before = row["history"][-2]
    assert before["verdict"] in ("missed", "uncertain", "met")
    assert before["bad_us"] == bad_us("old", Period(BEFORE.end - dt.timedelta(28), BEFORE.end))
    assert [one["verdict"] for one in row["history"][:-2]] == ["no_data"] * 6


def test_published_week_counts_and_shows_late_data(gold: Engine) -> None:
    found = statements(gold, PLAIN, BEFORE)
    attainment.publish(gold, found, BEFORE)
    same = named(told(gold, [PLAIN]), "plain")["history"]
    assert not any(one["restated"] for one in same)
    (old,) = [one for one in found if one.subject.topic == "old"]
    other = old.times._replace(good_us=old.times.good_us + 60, bad_us=old.times.bad_us - 60)
    attainment.publish(gold, [replace(old, times=other)], BEFORE)
    row = named(told(gold, [PLAIN]), "plain")["history"][-2]
    assert (row["restated"], row["bad_us"]) == (True, other.bad_us)
    assert row["subjects"] == len(found)


@pytest.mark.parametrize(
    ("name", "hours"),
    [("2024-W43", 169), pytest.param("2024-W44", 168, marks=pytest.mark.nightly)],
)
def test_weeks_are_those_of_the_zone_whatever_its_clocks_do(
    gold: Engine, name: str, hours: int
) -> None:
    week = periods.week(name, BERLIN.zone)
    row = named(told(gold, [PLAIN], week, calendar=BERLIN), "plain")
    subject = row["subjects"][0]
    assert len(subject["left"]) == hours
    assert subject["bad_us"] == bad_us("old", week)
    later = periods.week("2024-W45", BERLIN.zone)
    weeks = named(told(gold, [PLAIN], later, calendar=BERLIN), "plain")["history"]
    own = next(one for one in weeks if one["week"] == name)
    assert own["bad_us"] == bad_us("old", week)


def test_half_hour_zone_needs_no_expired_windows(gold: Engine) -> None:
    zone = ZoneInfo("Asia/Kolkata")
    week = periods.week("2024-W46", zone)
    weeks = named(told(gold, [PLAIN], week, calendar=Calendar("Asia/Kolkata")), "plain")["history"]
    assert weeks[-1]["bad_us"] == bad_us("old", week)
    assert weeks[-2]["week"] == "2024-W45"
    assert weeks[-2]["bad_us"] >= bad_us("old", periods.week("2024-W45", zone))


def test_a_lake_without_published_statements_has_weeks_too(gold: Engine) -> None:
    engine = LocalEngine(Lake(gold.lake.root))
    weeks = named(told(engine, [PLAIN], periods.week("2024-W45")), "plain")["history"]
    assert [one["verdict"] != "no_data" for one in weeks] == [False] * 5 + [True] * 3
