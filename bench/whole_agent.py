"""A whole agent, with its JVM and a real broker to read, on a lake that holds many files."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from bench import many_files
from bench.agents import AgentProcess
from bench.broker import LoadedBroker
from demo.errors import DemoError

if TYPE_CHECKING:
    from pathlib import Path

_PARTITIONS = 1_000
_DELIVERIES = 4
_SECONDS = 420
_SETTLED = 60  # looks, one a second
_DELIVER_EVERY = "30s"  # so that several are seen; cadences are then 10 s at most


class Whole(NamedTuple):
    """An agent process without the Admin client: anonymous memory at rest and resident peak, MB."""

    files: int
    at_rest: float
    peak: float


def weigh(folder: Path, sizes: tuple[int, ...]) -> list[Whole]:
    """Agents side by side, each on a lake with so many live files in every table.

    Raises:
        DemoError: One did not deliver in time.
    """
    with LoadedBroker(folder / "kafka") as broker, ExitStack() as running:
        broker.grow(_PARTITIONS)
        broker.start_clients()
        agents = []
        for files in sizes:
            own = folder / f"agent-{files}"
            many_files.make(own / "lake", files, 0)
            agent = AgentProcess(broker, own, deliver_every=_DELIVER_EVERY)
            agents.append((files, agent.commits(), running.enter_context(agent)))
        until = time.monotonic() + _SECONDS
        while any(agent.commits() < before + _DELIVERIES for _, before, agent in agents):
            if time.monotonic() > until:
                raise DemoError(f"an agent made no {_DELIVERIES} deliveries in {_SECONDS} s")
            time.sleep(1)
            for _, _, agent in agents:
                agent.look()
        return [
            Whole(files, statistics.median(agent.memory.anonymous[-_SETTLED:]), agent.peak_mb())
            for files, _, agent in agents
        ]
