"""What an agent weighs that reads ten real brokers over JMX and Admin.

As a program it measures that alone: ``python -m bench.many_brokers``.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.agents import AgentProcess, admin_section
from demo.cluster import Cluster
from demo.errors import DemoError
from demo.node import JMX_ROLE
from demo.topics import create_assigned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BROKERS = 10
PARTITIONS = 1_000
_REPLICAS = 3
_TOPICS = 50
_WINDOW_SECONDS = 30
_DELIVER_EVERY = f"{_WINDOW_SECONDS}s"  # so that several are seen; cadences are then 10 s at most
_DELIVERIES = 5
_SECONDS = 420
_LOOK_SECONDS = 1


class ManyBrokers:
    """A cluster of ten brokers, each of which leads a tenth of the partitions."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster.start(folder, BROKERS)
        for number in range(_TOPICS):
            create_assigned(
                self.cluster, f"orders-{number}", [*islice(_turns(), PARTITIONS // _TOPICS)]
            )

    def sections(self, folder: Path) -> dict[str, Any]:
        """Of an agent's configuration: all brokers by JMX, a lake and a spool in a folder."""
        sources = [
            {
                "node": node.plan.id,
                "jmx": {
                    "port": node.jmx_port,
                    "user": JMX_ROLE,
                    "password_file": str(node.password_file),
                },
            }
            for node in self.cluster.brokers
        ]
        lake, spool = {"path": str(folder / "lake")}, {"path": str(folder / "spool.db")}
        return {"sources": sources, "lake": lake, "spool": spool}


def _turns() -> Iterator[list[int]]:
    """Replicas of one partition after the other; each broker leads as many."""
    for _, first in product(range(PARTITIONS), range(BROKERS)):
        yield [(first + place) % BROKERS + 1 for place in range(_REPLICAS)]


def weigh(folder: Path, say: Callable[[str], None]) -> dict[str, float]:
    """Memory, processor and commits of the agent, after some deliveries.

    Returns:
        Figures, as the last line of the benchmark has them.

    Raises:
        DemoError: It did not deliver in time.
    """
    brokers = ManyBrokers(folder / "kafka")
    try:
        agent = AgentProcess(
            brokers, folder / "agent", more=admin_section(brokers), deliver_every=_DELIVER_EVERY
        )
        with agent:
            began, first, cpu = time.monotonic(), 0.0, 0.0
            while agent.commits() <= _DELIVERIES:
                if time.monotonic() - began > _SECONDS:
                    raise DemoError(f"an agent made no {_DELIVERIES} deliveries in {_SECONDS} s")
                time.sleep(_LOOK_SECONDS)
                agent.look()
                if not first and agent.commits() > 1:
                    first, cpu = time.monotonic(), agent.cpu_seconds()
            seconds, used = time.monotonic() - first, agent.cpu_seconds() - cpu
            deliveries = agent.commits() - 1
            peak = agent.peak_mb()
        found = {
            "rss_anon_mb_10_brokers": round(agent.memory.anonymous_mb, 1),
            "rss_mb_10_brokers": round(agent.memory.resident_mb, 1),
            "rss_peak_mb_10_brokers": round(peak, 1),
            "cpu_percent_10_brokers": round(used / seconds * 100, 2),
            "scrapes_10_brokers": agent.scrapes(),
            "commits_a_window_10_brokers": round((deliveries - 1) * _WINDOW_SECONDS / seconds, 2),
        }
    finally:
        brokers.cluster.close()
    say(f"  {found['rss_anon_mb_10_brokers']:.0f} MB")
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="jmxlake-bench-") as made:
        print(json.dumps(weigh(Path(made), lambda line: print(line, file=sys.stderr))))
