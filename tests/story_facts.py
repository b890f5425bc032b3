"""The facts of the story's lake: rolled up and reported as the commands do, but for the clock."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from lakehouse.core import lake as lakes
from lakehouse.core.periods import WEEK, Period
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts import build as reports
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.report_calendar import Calendar, Maintenance
from tests.lake_builder import BASE, micros

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.core.objective import Objective
    from tests.story_lake import Story

_WEEK_HOURS = 7 * 24


def wanted() -> tuple[Objective, ...]:
    """The shipped objectives, and the optional one on latency."""
    optional = (
        one
        for one in objective_files.load(objective_files.OPTIONAL)
        if one.name == "produce-latency"
    )
    return (*objective_files.load(), *optional)


def facts_of(root: Path, story: Story) -> dict[str, Any]:
    """Roll a story's lake up and report over the whole of it.

    Args:
        root: A folder that is still empty.
        story: What happened.
    """
    story.tell().commit(root)
    engine, objectives = LocalEngine(lakes.at(str(root))), wanted()
    rollup(engine, objectives, Wanted(tidy="never"))
    start = BASE + dt.timedelta(seconds=story.first)
    grain = WEEK if story.hours == _WEEK_HOURS else "span"
    period = Period(start, start + dt.timedelta(hours=story.hours), grain)
    planned = Maintenance(
        *map(micros, story.maintenance), "disks of broker 3 are exchanged",
        {"cluster": ("*",), "topic": ("shipments", "payments")},
    )  # fmt: skip
    told = reports.facts(
        engine, objectives, period,
        now=period.end + dt.timedelta(minutes=6), calendar=Calendar(maintenance=(planned,)),
    )  # fmt: skip
    return told | {"jmxlake": "0"}  # the version is not a part of the story
