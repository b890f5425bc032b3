from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Extent:
    """How much is measured.

    Attributes:
        rounds: In which the tools for the same beans have their turns.
        rounds_all: The same for jmx_exporter with all beans.
        warm_up: Scrapes of each quick tool before anything counts: the broker compiles meanwhile.
        cost_seconds: How long each tool scrapes without a pause.
        idle_seconds: How long the broker is watched while nobody reads it.
        curve_rounds: Scrapes at each point of the curve.
        agent_scrapes: After so many the agents' memory counts.
        agent_seconds: The longest that may take; the figures say how many they were.
        alone_seconds: How long an agent's processor time counts; five minutes have one delivery.
    """

    rounds: int
    rounds_all: int
    warm_up: int
    cost_seconds: float
    idle_seconds: float
    curve_rounds: int
    agent_scrapes: int
    agent_seconds: float
    alone_seconds: float


FULL = Extent(
    rounds=250, rounds_all=40, warm_up=500, cost_seconds=6, idle_seconds=10, curve_rounds=250,
    agent_scrapes=10_000, agent_seconds=1_200, alone_seconds=300,
)  # fmt: skip
QUICK = Extent(
    rounds=60, rounds_all=10, warm_up=150, cost_seconds=2, idle_seconds=4, curve_rounds=60,
    agent_scrapes=500, agent_seconds=70, alone_seconds=30,
)  # fmt: skip
