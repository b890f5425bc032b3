"""Stretches of hours in a report over a period that is not made of hours."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes, periods
from lakehouse.core.lake import Lake
from lakehouse.core.periods import Period, instant
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import PeriodError
from lakehouse.gold.incidents import joined
from lakehouse.report.facts.build import facts
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.replication import partition_incidents
from lakehouse.slo.openslo import objective_files
from tests import gold_builder, rollups
from tests.lake_builder import BASE, CLUSTER, micros

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.reads

WINDOW: Final = 300
SECOND: Final = 1_000_000


def stretch(start: float, end: float, lead: float = 0, tail: float = 0) -> dict[str, Any]:
    """A stretch of partition t-0 within the first hour, seconds."""
    return {
        "cluster": CLUSTER, "window_start": BASE, "metric": "kafka.partition.under_min_isr",
        "level": "partition", "topic": "t", "partition_id": 0, "source": "broker-1",
        "started_at": instant(micros(start)), "ended_at": instant(micros(end)),
        "lead_us": int(lead * SECOND), "tail_us": int(tail * SECOND),
        "worst": 1.0, "total": 1.0, "runs": 1, "known_wrong": False,
    }  # fmt: skip


def found(root: Path, first: int, last: int) -> list[tuple[float, ...]]:
    """Incidents from one window until before another: seconds after the hour's start."""
    ends = (BASE + dt.timedelta(seconds=number * WINDOW) for number in (first, last))
    gold = Gold(LocalEngine(Lake(str(root))), CLUSTER, Period(*ends), WINDOW)
    incidents = joined(gold.engine, gold.whole(tables.INCIDENTS))
    return [
        (
            *(
                (dt.datetime.fromisoformat(end) - BASE).total_seconds()
                for end in (one.start, one.end)
            ),
            *(us / SECOND for us in (one.lead_us, one.tail_us)),
        )
        for one in partition_incidents(incidents).get(("t", 0), [])
    ]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """From 100 to 700 s, of which the last 150 s may have been over; and from 800 to 810 s."""
    folder = tmp_path_factory.mktemp("stretches")
    gold_builder.put(folder, tables.INCIDENTS, stretch(100, 700, 8, 150), stretch(800, 810, 5, 2))
    return folder


@pytest.mark.parametrize(
    ("windows", "wanted"),
    [
        ((0, 12), [(100, 700, 8, 150), (800, 810, 5, 2)]),
        ((0, 1), [(100, 300, 8, 0)]),
        ((0, 2), [(100, 600, 8, 50)]),
        ((1, 2), [(300, 600, 0, 50)]),
        ((2, 3), [(600, 700, 0, 100), (800, 810, 5, 2)]),
        ((3, 12), []),
    ],
)
def test_incident_is_cut_to_the_period(
    root: Path, windows: tuple[int, int], wanted: list[tuple[float, ...]]
) -> None:
    assert found(root, *windows) == wanted


def test_hours_that_an_older_version_rolled_up_are_refused(tmp_path: Path) -> None:
    """Without stretches a report would say that there was no incident and no gap."""
    rollups.hours(1, 0.0).commit(tmp_path)
    rollups.local(tmp_path)
    engine = LocalEngine(lakes.at(str(tmp_path)))
    asked = (engine, objective_files.load(), periods.week("2026-W47"))
    assert facts(*asked)["coverage"]["sources"]
    for table in (tables.READINGS, tables.INCIDENTS):
        engine.write(table, None, "date IS NOT NULL")
    with pytest.raises(PeriodError, match="Run jmxlake rollup --since 2026-11-16"):
        facts(*asked)
