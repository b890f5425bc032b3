"""The levels of the fleet benchmark: how many agents, how often, and what came of it."""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import psutil

from bench.fleet_agents import Order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.fleet_lake import Lake
    from bench.fleet_stage import Agents, Stage

USUAL_SECONDS: Final = 300
"""The commit interval that agents have by default."""
LATE_SECONDS: Final = 30
"""A window is late when it is not in the lake so long after it was due: a tenth of the usual."""
_AHEAD_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Level:
    """Agents that work at the same time.

    Attributes:
        fleets: How many there are, by lake.
        interval: Seconds between their commits.
        spread: Whether they commit one after the other, or all at the interval's end.
        rounds: Intervals that are measured.
        patience: Seconds after the last tick in which what is late is waited for.
    """

    fleets: dict[str, int]
    interval: float = USUAL_SECONDS
    spread: bool = True
    rounds: int = 1
    patience: float = 120


@dataclass(frozen=True)
class Result:
    """What one fleet of a level did.

    Attributes:
        agents: How many there were.
        interval: Seconds between their commits.
        spread: Whether their ticks were spread.
        commit_retries: How often delta-rs tries one commit.
        ticks: Seconds from when a window was due until it was in the lake, all tables.
        commits: Seconds for one table (runs): load, comparison, commit.
        lost_rounds: Of each commit to runs, how often another one was faster.
        failures: Attempts that ended with an error and were made again later, by what they said.
        lost: Rows that the agents take to be in the lake and are not.
        doubled: Rows that are there twice.
        busy: Share of this machine's processors in use meanwhile, of all fleets of the level.
        requests: Requests of agents for each window delivered, of all fleets of the level.
    """

    agents: int
    interval: float
    spread: bool
    commit_retries: int
    ticks: list[float]
    commits: list[float]
    lost_rounds: list[int]
    failures: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    busy: float = 0.0
    requests: float = 0.0

    @property
    def like(self) -> int:
        """As many agents at the usual interval commit as often."""
        return round(self.agents * USUAL_SECONDS / self.interval)

    @property
    def late_share(self) -> float:
        """Share of the agents' time in which a window of theirs was late."""
        late = (max(0, seconds - LATE_SECONDS) for seconds in self.ticks)
        return sum(late) / (len(self.ticks) * self.interval)


def measure(stage: Stage, agents: Agents, level: Level, first: int) -> list[Result]:
    """Run a level, and count every row of its lakes.

    Args:
        stage: What it runs on.
        agents: The processes of its agents.
        level: What is to be run.
        first: Number of the first agent; agents of the same number and lake go on.
    """
    lakes = {name: stage.lake(name) for name in level.fleets}
    order = _order(level, lakes, first)
    agents.prepare(order)
    before = {name: lake.versions() for name, lake in lakes.items()}
    psutil.cpu_percent()  # from now on
    begin = time.time() + _AHEAD_SECONDS
    last = level.interval * (level.rounds if level.spread else level.rounds - 1)
    end = begin + last + level.patience
    accounts, requests = agents.work(_order(level, lakes, first, begin, end))
    share = psutil.cpu_percent() / 100
    each = requests / sum(len(account.ticks) for account in accounts)
    found = []
    for name, lake in lakes.items():
        theirs = [account for account in accounts if account.lake == lake.url]
        lost, doubled = lake.count(theirs)
        found.append(
            Result(
                level.fleets[name], level.interval, level.spread, agents.commit_retries,
                [seconds for account in theirs for seconds in account.ticks],
                [seconds for account in theirs for seconds in account.commits["runs"]],
                lake.lost_rounds(before[name]),
                Counter(failure for account in theirs for failure in account.failures),
                lost, doubled, share, each,
            )
        )  # fmt: skip
    return found


def _order(
    level: Level, lakes: dict[str, Lake], first: int, begin: float = 0.0, end: float = 0.0
) -> Order:
    whose: dict[int, str] = {}
    for name, count in level.fleets.items():
        start = first + len(whose)
        whose |= dict.fromkeys(range(start, start + count), lakes[name].url)
    return Order(whose, begin, level.interval, level.rounds, level.spread, end)


def median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) if seconds else math.nan


def p99(seconds: Sequence[float]) -> float:
    """What 99 of 100 did not exceed; of fewer the longest."""
    return sorted(seconds)[math.ceil(len(seconds) * 0.99) - 1] if seconds else math.nan
