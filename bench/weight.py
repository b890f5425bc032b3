"""What an agent weighs: memory after many scrapes, processor time at the default cadences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from bench.agents import AgentProcess, Memory, admin_section
from bench.installed import WITHOUT_SITE, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bench.broker import LoadedBroker
    from bench.extent import Extent

_LOOK_SECONDS = 1
_COUNT_SECONDS = 20
_SETTLE_SECONDS = 60
_KINDS: Final[Mapping[str, Callable[[LoadedBroker], dict[str, Any]]]] = {
    "": lambda _: {},
    "_admin": admin_section,
    "_remote_log": lambda broker: admin_section(broker) | broker.remote_log_section,
}
"""By the name in figures: further sections of the agent's configuration."""


@dataclass(frozen=True)
class Weight:
    """One kind of agent.

    Attributes:
        name: As figures call it: empty, or its further sections.
        scrapes: How many it had done when its memory was read.
        peak_mb: The most that it ever had resident.
        cpu_percent: Of a core, at the default cadences, with all that an agent does.
    """

    name: str
    scrapes: int
    memory: Memory
    peak_mb: float
    cpu_percent: float

    def figures(self) -> dict[str, float]:
        """As the last line of the benchmark has them."""
        return {
            f"rss{self.name}_anon_mb": round(self.memory.anonymous_mb, 1),
            f"rss{self.name}_mb": round(self.memory.resident_mb, 1),
            f"rss{self.name}_growth_mb": round(self.memory.growth_mb, 1),
            f"rss{self.name}_peak_mb": round(self.peak_mb, 1),
            f"rss{self.name}_scrapes": self.scrapes,
            f"cpu{self.name}_percent": round(self.cpu_percent, 3),
        }


def weigh(
    broker: LoadedBroker, folder: Path, extent: Extent, say: Callable[[str], None]
) -> list[Weight]:
    """Memory of all kinds at once, then the processor of each, with nothing beside it."""
    with ExitStack() as running:
        fast = {
            name: running.enter_context(
                AgentProcess(broker, folder / f"fast{name}", more=more(broker), fast=True)
            )
            for name, more in _KINDS.items()
        }
        _watch(fast, extent, say)
        peaks = {name: agent.peak_mb() for name, agent in fast.items()}
    return [
        Weight(
            name,
            fast[name].scrapes(),  # all are delivered now
            fast[name].memory,
            peaks[name],
            _alone(broker, folder, name, extent, say),
        )
        for name in _KINDS
    ]


def large_window(broker: LoadedBroker, folder: Path) -> dict[str, float]:
    """Memory of an agent's parts that read the broker and keep and deliver a window of many rows.

    Returns:
        Figures, as the last line of the benchmark has them.
    """
    found = _measured("bench.large_window", folder, broker.sections(folder))
    return {f"rss_large_window_{name}": value for name, value in found.items()}


def remote_log(broker: LoadedBroker, folder: Path) -> dict[str, float]:
    """Processor time of a scrape of ``remote_log``, in a process of its own.

    Returns:
        Figures, as the last line of the benchmark has them.
    """
    sections = broker.sections(folder) | _KINDS["_remote_log"](broker)
    return _measured("bench.remote_log", folder, sections)


def _measured(module: str, folder: Path, sections: dict[str, Any]) -> dict[str, float]:
    """Return the figures of a module that measures parts of an agent with this configuration."""
    folder.mkdir()
    config = folder / "agent.yaml"
    config.write_text(yaml.safe_dump(sections))
    command = [sys.executable, WITHOUT_SITE, "-m", module, str(config)]
    packages = {**os.environ, **environment(folder / "packages")}
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=packages)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def _watch(agents: dict[str, AgentProcess], extent: Extent, say: Callable[[str], None]) -> None:
    """Look at their memory until each has delivered its scrapes."""
    until, fewest = time.monotonic() + extent.agent_seconds, 0
    while fewest < extent.agent_scrapes and time.monotonic() < until:
        counted = time.monotonic() + _COUNT_SECONDS
        while time.monotonic() < counted:
            time.sleep(_LOOK_SECONDS)
            for agent in agents.values():
                agent.look()
        fewest = min(agent.scrapes() for agent in agents.values())
        used = ", ".join(f"{agent.memory.anonymous[-1]:.0f} MB" for agent in agents.values())
        say(f"  at least {fewest:,} scrapes delivered by each agent; {used}")


def _alone(
    broker: LoadedBroker, folder: Path, name: str, extent: Extent, say: Callable[[str], None]
) -> float:
    """The share of a core that an agent takes at the default cadences, in percent."""
    more = _KINDS[name](broker)
    say(f"the processor of an agent with {', '.join(more) or 'JMX only'}, alone")
    with AgentProcess(broker, folder / f"alone{name}", more=more) as agent:
        time.sleep(min(_SETTLE_SECONDS, extent.alone_seconds))
        began, used = time.monotonic(), agent.cpu_seconds()
        time.sleep(extent.alone_seconds)
        return (agent.cpu_seconds() - used) / (time.monotonic() - began) * 100
