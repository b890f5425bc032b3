"""Weeks of one time zone, as commands and views of another one file them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes, periods
from lakehouse.core.objective import Objective
from lakehouse.core.periods import micros
from lakehouse.core.subjects import Subject
from lakehouse.engines.gold_reader import last_week
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.explain.story import explain
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.report_calendar import Calendar
from lakehouse.slo.sla_statement import Statement, Times
from tests import rollups
from tests.deploy.bundle_file import read
from tests.lake_builder import BASE, Batch
from tests.unit.test_views import Views

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.core.objective import Unknown

ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "America/Denver", "Asia/Kolkata",
    "Australia/Lord_Howe", "Pacific/Kiritimati", "Pacific/Pago_Pago",
]  # fmt: skip


def statement(zone: str, grain: str = "1w", week: str = "2026-W47") -> dict[str, Any]:
    period = periods.week(week, ZoneInfo(zone))
    start = period.start if grain == "1w" else period.end - dt.timedelta(days=28)
    return {
        "cluster": "c", "objective": "min-isr", "period_kind": grain, "topic": "t", "statement": 1,
        "period_start": start, "period_end": period.end, "stated_at": period.end, "time_zone": zone,
        "attainment": 1.0, "unknown_us": 6e7,
    }  # fmt: skip


@pytest.mark.edge(12)
@pytest.mark.parametrize("grain", ["1w", "28d"])
@pytest.mark.parametrize("shown", ["UTC", "Europe/Berlin", "Pacific/Kiritimati"])
@pytest.mark.parametrize("stated", ZONES)
def test_verdicts_of_a_zone_are_in_their_week(stated: str, shown: str, grain: str) -> None:
    views = Views(shown)
    views.put(tables.SLA, statement(stated, grain))
    (row,) = views.rows("verdicts")
    assert (str(row["week_local"]), row["is_of_week"]) == ("2026-11-16", True)
    (week,) = views.rows("topic_weeks")
    assert (str(week["week_local"]), week["unknown_minutes"]) == ("2026-11-16", 1)


def weekly_schedule(zone: str) -> tuple[dt.time, str]:
    """When the weekly job of the bundle starts, if the variable time_zone is that zone."""
    schedule = read()["resources"]["jobs"]["weekly_report"]["schedule"]
    _, minute, hour, *_ = schedule["quartz_cron_expression"].split()
    named = schedule["timezone_id"].replace("${var.time_zone}", zone)
    return dt.time(int(hour), int(minute)), named


@pytest.mark.edge(13)
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "monday", [dt.date(2026, 3, 30), dt.date(2026, 11, 2), dt.date(2027, 1, 4)]
)
def test_weekly_job_reports_the_week_that_just_ended(zone: str, monday: dt.date) -> None:
    clock, name = weekly_schedule(zone)
    now = periods.wall(monday, clock, ZoneInfo(name))
    first = now - dt.timedelta(days=60)
    week = periods.last_ended(first, now, now, ZoneInfo(zone))
    assert week.end.astimezone(ZoneInfo(zone)).date() == monday


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of two weeks: a topic of both, one that is new, one that is gone."""
    root = tmp_path_factory.mktemp("lake")
    batch = Batch()
    week = 7 * 86_400
    for start in (0, week - 600, week, week + 1800):
        batch.scrape("min_isr", start, start + 300)
        batch.scrape("topology", start, start + 300)
        for topic, here in (("both", True), ("new", start > week), ("gone", start == 0)):
            if here:
                batch.zeros("kafka.partition.under_min_isr", start, start + 300, topic, [0, 1])
    rollups.prepare(root)
    batch.commit(root)
    rollup(LocalEngine(lakes.at(str(root))), (), Wanted(tidy="never"))
    return root


@pytest.mark.edge(12)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Denver"])
@pytest.mark.parametrize(("topic", "week"), [("both", 47), ("new", 48), ("gone", 47)])
def test_explain_takes_the_week_of_the_weekly_report(
    lake: Path, zone: str, topic: str, week: int
) -> None:
    engine, there = LocalEngine(lakes.at(str(lake))), ZoneInfo(zone)
    now_us = micros(BASE + dt.timedelta(days=7, hours=2))
    reported = last_week(engine, now_us, there)
    assert periods.week_name(reported, there) == "2026-W47"
    story = explain(engine, (), topic, None, calendar=Calendar(zone), now_us=now_us)
    wanted = periods.week(f"2026-W{week}", there)
    assert story["from"] == periods.iso(micros(wanted.start))


def running(bad: int, so_far: int, ahead: int, target: float, unknown: Unknown) -> Statement:
    objective = Objective(
        name="o", title="o", description="", metric="kafka.partition.unavailable", level="topic",
        threshold=0.0, target=target, unknown=unknown,
    )  # fmt: skip
    topic = Subject("c", "topic", "t", None, None, None, None, 0, so_far)
    seen = so_far - so_far // 50
    return Statement(objective, topic, so_far, Times(seen - bad, bad, bad, bad), None, ahead)


@pytest.mark.edge(14)
@pytest.mark.parametrize("unknown", ["interval", "exclude", "good", "bad"])
@pytest.mark.parametrize("so_far", [120, 3600, 2 * 86_400, 604_800])
@pytest.mark.parametrize("share", [0.0, 0.0005, 0.005, 0.1, 0.9])
def test_missed_so_far_has_no_budget_left(unknown: Unknown, so_far: int, share: float) -> None:
    whole = so_far * 1_000_000
    ahead = 604_800_000_000 - whole
    one = running(int(share * whole), whole, ahead, 0.999, unknown)
    assert one.verdict != "missed" or one.budget_left_us < 0
    assert one.verdict != "met" or one.budget_left_us >= 0
    more = one.budget_of_window_left_us - one.budget_left_us
    assert more == pytest.approx(0.001 * ahead, abs=1)
