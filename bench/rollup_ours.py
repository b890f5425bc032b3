"""What ``jmxlake`` itself takes: rollups of a day, of an hour after a history, a week's report."""

from __future__ import annotations

import datetime as dt
import shutil
import statistics
from typing import TYPE_CHECKING, Final, NamedTuple

from bench import rollup_fleet
from bench.rollup_fleet import START, Written
from bench.rollup_process import Cost, measure
from demo.agents import script

if TYPE_CHECKING:
    from pathlib import Path

    from bench.rollup_world import Fleet

_HOURS_A_COMMIT: Final = 6
"""Of a history: some hundred commits, as maintenance leaves those of many agents."""

_EVENING: Final = 18
SUNDAY: Final = START - dt.timedelta(hours=24 - _EVENING)
MONDAY: Final = START + dt.timedelta(hours=_EVENING)
"""Evenings at which hours are added: as a week ends, and as one begins."""


class RolledUp(NamedTuple):
    """Runs that were new to one rollup, and what it cost."""

    written: Written
    cost: Cost


class Growth(NamedTuple):
    """What adding an hour costs on an evening after so many days of history: medians."""

    evening: dt.datetime
    days: int
    seconds: float
    cpu_seconds: float


def rolled_up(lake: Path, written: Written, engine: str = "spark") -> RolledUp:
    """Roll up what was written."""
    return RolledUp(written, measure([script("jmxlake"), "rollup", str(lake), "--engine", engine]))


def anew(lake: Path, written: Written, engine: str) -> RolledUp:
    """Roll a lake up as if gold had never been made."""
    shutil.rmtree(lake / "gold")
    return rolled_up(lake, written, engine)


def growth(folder: Path, fleet: Fleet, days: tuple[int, int], repeats: int) -> list[Growth]:
    """Add hours after a short and a long history, in turn, on a Sunday and a Monday evening.

    Both histories end at the same instant: what differs is what lies before.
    """
    lakes = {one: folder / f"history-{one}" for one in days}
    for one, lake in lakes.items():
        began = SUNDAY - dt.timedelta(days=one)
        written = rollup_fleet.write(lake, fleet, began, 24 * one, hours_a_commit=_HOURS_A_COMMIT)
        rolled_up(lake, written, "local")
    found = []
    for evening in (SUNDAY, MONDAY):
        costs: dict[int, list[Cost]] = {one: [] for one in days}
        for hour in range(repeats):
            for one, lake in lakes.items():
                at = evening + dt.timedelta(hours=hour)
                written = rollup_fleet.write(lake, fleet, at, 1, show=False)
                costs[one].append(rolled_up(lake, written).cost)
        found += [
            Growth(
                evening,
                one,
                statistics.median(cost.seconds for cost in own),
                statistics.median(cost.cpu_seconds for cost in own),
            )
            for one, own in costs.items()
        ]
    return found


def told(lake: Path, command: str, week: str) -> Cost:
    """Return the cost of ``slo publish`` of all clusters, or ``report`` of one, over a week."""
    more = ["--cluster", "cluster-1", "--html", str(lake.parent / "report.html")]
    line = [script("jmxlake"), *command.split(), str(lake), "--week", week]
    return measure(line + (more if command == "report" else []))
