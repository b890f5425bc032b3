"""What an agent weighs: memory after many scrapes, processor time at the default cadences."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bench.agents import AgentProcess, Memory

if TYPE_CHECKING:
    from pathlib import Path

    from bench.broker import LoadedBroker
    from bench.extent import Extent


@dataclass(frozen=True)
class Weight:
    """One kind of agent.

    Attributes:
        admin: Whether it has the Admin client.
        scrapes: How many it had done when its memory was read.
        cpu_percent: Of a core, at the default cadences, with all that an agent does.
    """

    admin: bool
    scrapes: int
    memory: Memory
    cpu_percent: float

    def figures(self) -> dict[str, float]:
        """As the last line of the benchmark has them."""
        which = "_admin" if self.admin else ""
        return {
            f"rss{which}_mb": round(self.memory.last_mb, 1),
            f"rss{which}_growth_mb": round(self.memory.growth_mb, 1),
            f"rss{which}_scrapes": self.scrapes,
            f"cpu{which}_percent": round(self.cpu_percent, 3),
        }


class Scale:
    """Weighs the agent without and with the Admin client.

    Two agents at the default cadences run as long as the scale is open: their processor time counts
    from ``tare``, when they have settled. Two others are so fast that memory has time to grow.
    """

    def __init__(self, broker: LoadedBroker, folder: Path, extent: Extent) -> None:
        self._broker, self._folder, self._extent = broker, folder, extent
        self._open = contextlib.ExitStack()
        self._slow = [self._start("slow", admin=admin, fast=False) for admin in (False, True)]
        self._tare: list[tuple[float, float]] = []

    def tare(self) -> None:
        """From now on processor time counts."""
        self._tare = [(time.monotonic(), agent.cpu_seconds()) for agent in self._slow]

    def weigh(self) -> list[Weight]:
        """Let the fast agents do their scrapes, then read everything."""
        fast = [self._start("fast", admin=admin, fast=True) for admin in (False, True)]
        until = time.monotonic() + self._extent.agent_seconds
        while time.monotonic() < until:
            time.sleep(2)
            for agent in fast:
                agent.look()
            if all(agent.scrapes() >= self._extent.agent_scrapes for agent in fast):
                break
        shares = [
            (agent.cpu_seconds() - used) / (time.monotonic() - since) * 100
            for agent, (since, used) in zip(self._slow, self._tare, strict=True)
        ]
        return [
            Weight(admin, agent.scrapes(), agent.memory, share)
            for admin, agent, share in zip((False, True), fast, shares, strict=True)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _start(self, kind: str, *, admin: bool, fast: bool) -> AgentProcess:
        folder = self._folder / f"{kind}-{'admin' if admin else 'lean'}"
        return self._open.enter_context(AgentProcess(self._broker, folder, admin=admin, fast=fast))
