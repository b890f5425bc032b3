"""What ``jmxlake`` itself takes: rollups of a day, of other sizes, of an hour after a history."""

from __future__ import annotations

import datetime as dt
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


class RolledUp(NamedTuple):
    """Runs that were new to one rollup, and what it cost."""

    written: Written
    cost: Cost


class Growth(NamedTuple):
    """What adding an hour costs after so many days of history: medians."""

    days: int
    seconds: float
    cpu_seconds: float


def rolled_up(lake: Path, written: Written, *, large: bool = True) -> RolledUp:
    """Roll up what was written."""
    return RolledUp(written, measure([script("jmxlake"), "rollup", str(lake)], large=large))


def of_size(lake: Path, fleet: Fleet, hours: int) -> RolledUp:
    """The first rollup of a lake of some hours."""
    return rolled_up(lake, rollup_fleet.write(lake, fleet, START, hours))


def growth(folder: Path, fleet: Fleet, days: tuple[int, int], repeats: int) -> list[Growth]:
    """Add the same hours after a short and a long history, in turn.

    Both histories end at the same instant, so that the open week and month hold the same days: what
    differs is what lies before them.
    """
    lakes = {}
    for one in days:
        lakes[one] = folder / f"history-{one}"
        began = START + dt.timedelta(days=1 - one)
        written = rollup_fleet.write(
            lakes[one], fleet, began, 24 * one, hours_a_commit=_HOURS_A_COMMIT
        )
        rolled_up(lakes[one], written)
    costs: dict[int, list[Cost]] = {one: [] for one in days}
    for hour in range(repeats):
        for one, lake in lakes.items():
            at = START + dt.timedelta(hours=24 + hour)
            written = rollup_fleet.write(lake, fleet, at, 1, show=False)
            costs[one].append(rolled_up(lake, written, large=False).cost)
    return [
        Growth(
            one,
            statistics.median(cost.seconds for cost in found),
            statistics.median(cost.cpu_seconds for cost in found),
        )
        for one, found in costs.items()
    ]


def told(lake: Path, command: str, week: str) -> Cost:
    """``sla`` of all clusters, or ``report`` of one, over a week."""
    more = ["--cluster", "cluster-1", "--html", str(lake.parent / "report.html")]
    line = [script("jmxlake"), command, str(lake), "--week", week]
    return measure(line + (more if command == "report" else []), large=False)
