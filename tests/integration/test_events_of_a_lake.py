"""Events of a lake: under any objectives, and where a part of what they are made of is missing."""

from __future__ import annotations

import datetime as dt
import shutil
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.objective import Slices, TimeWindow
from lakehouse.core.periods import WEEK, Period, week_of
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts.build import facts
from lakehouse.report.facts.gold import Gold
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from tests import sql_views
from tests.lake_builder import BASE
from tests.story_lake import Story

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakehouse.core.objective import Objective

NAMES: Final = ("topic", "partition", "user", "client_id", "group", "source")
HOURS: Final = Period(BASE, BASE + dt.timedelta(hours=4))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("events")
    Story(hours=4).tell().commit(folder)
    wanted = [*objective_files.load(), *other_objectives()]
    rollup(LocalEngine(lakes.at(str(folder))), wanted, Wanted(tidy="never"))
    return folder


def of(root: Path, wanted: Sequence[Objective], period: Period, **rest: Any) -> dict[str, Any]:
    engine = LocalEngine(lakes.at(str(root)))
    return facts(engine, wanted, period, now=period.end + dt.timedelta(minutes=6), **rest)


def check_sums(found: dict[str, Any]) -> int:
    """Compare bad time by subject with its events; how many subjects were bad."""
    used: Counter[tuple[Any, ...]] = Counter()
    for event in found["events"]:
        for use in event["uses"]:
            used[use["objective"], *map(use.get, NAMES)] += use["bad_us"]
    wanted = {
        (objective["name"], *map(subject.get, NAMES)): subject["bad_us"]
        for objective in found["objectives"]
        for subject in objective["subjects"]
        if "jmxlake.coverage" not in objective["metrics"] and subject["bad_us"]
    }
    assert used == wanted
    return len(wanted)


def other_objectives() -> list[Objective]:
    """In slices, averaged, over 28 days, by partition and cluster, above a threshold, on events."""
    by_name = {one.name: one for one in objective_files.load()}
    isr, throttling = by_name["min-isr"], by_name["produce-throttling"]
    month = replace(isr, name="month", window=TimeWindow(28, "d", None))
    return [
        replace(isr, name="slices", slices=Slices(600_000_000, 0.9)),
        replace(throttling, name="averaged", slices=Slices(300_000_000)),
        replace(isr, name="partitions", level="partition"),
        replace(isr, name="whole", level="cluster"),
        replace(by_name["copy-lag"], name="above", threshold=1024.0),
        replace(isr, name="some", match={"topic": ("clicks",)}),
        month,
        *objective_files.load(objective_files.OPTIONAL),
    ]


def test_events_add_up_under_objectives_of_every_kind(root: Path) -> None:
    found = of(root, other_objectives(), HOURS)
    assert check_sums(found) > 10
    kinds = {row["kind"] for row in found["events"]}
    assert {"availability", "throttling", "tiered", "latency", "errors"} <= kinds


def test_events_add_up_over_windows_of_an_earlier_start(root: Path) -> None:
    week = week_of(BASE)
    found = of(root, other_objectives(), replace(week, grain=WEEK), min_coverage=0.0)
    assert check_sums(found) > 10


def test_events_of_a_part_of_an_hour_add_up(root: Path) -> None:
    period = Period(BASE + dt.timedelta(minutes=70), BASE + dt.timedelta(minutes=75))
    found = of(root, objective_files.load(), period)
    assert check_sums(found) > 3
    assert all(row["weeks_in_row"] == 1 for row in found["events"])


def test_without_the_table_of_changes_a_restart_is_not_ruled_out(
    root: Path, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(root, lake)
    shutil.rmtree(lake / "bronze" / "events")
    found = of(lake, objective_files.load(), HOURS)
    unknown = [row["cause"] for row in found["events"] if row["topics"] == ["clicks"]
               and row["kind"] == "availability"]  # fmt: skip
    assert [one["ruled_out"] for one in unknown] == [["scrape_failure"]]
    check_sums(found)


@pytest.mark.parametrize("lost", [tables.INCIDENTS, tables.READINGS], ids=lambda one: one.name)
def test_events_are_null_where_gold_lost_their_rows(
    root: Path, monkeypatch: pytest.MonkeyPatch, lost: tables.Table
) -> None:
    """An empty list would say that nothing happened."""
    monkeypatch.setattr(Gold, "is_incomplete", lambda _, table: table is lost)
    found = of(root, objective_files.load(), HOURS)
    assert [found[name] for name in ("events", "incidents", "incidents_omitted")] == [None] * 3


def test_events_are_null_below_minimum_coverage(root: Path) -> None:
    assert of(root, objective_files.load(), HOURS, min_coverage=99.99)["events"] is None
    assert of(root, objective_files.load(), HOURS, min_coverage=99.0)["events"]


def test_the_view_groups_as_the_report_does(root: Path) -> None:
    views = sql_views.in_duckdb(root)
    rows = sql_views.asked(views, "SELECT * FROM events WHERE kind IN ('availability', 'loss')")
    found = {(row["kind"], round(row["minutes"] * 6e7), row["incidents"]) for row in rows}
    report = of(root, objective_files.load(), HOURS)
    told = [row for row in report["events"] if row["kind"] in ("availability", "loss")]
    of_partitions = Counter(
        row["event"] for row in report["incidents"] if row["level"] in ("partition", "group")
    )
    assert found == {(row["kind"], row["bad_us"], of_partitions[row["number"]]) for row in told}
    by_group = next(row for row in rows if row["kind"] == "loss")
    assert (by_group["consumer_group"], by_group["likely_cause"]) == ("nightly", "retention")
