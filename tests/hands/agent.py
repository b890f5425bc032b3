"""Lines that an agent prints about a real broker: of a check, and of an outage.

The agent has its default families and intervals, as an operator installs it.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from demo.agents import agent_config, script
from demo.cluster import Cluster
from demo.ports import free_ports
from tests.running import RunningAgent
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from demo.node import Node

_SECONDS: Final = 600
_FAILURES: Final = ("error", "timeout", "refused")


def counts(log: Callable[[str], None] = lambda _: None) -> dict[str, int]:
    """Start a broker and return the lines of a check, and of an outage with its end.

    Args:
        log: Gets each counted line.
    """
    with tempfile.TemporaryDirectory(prefix="jmxlake-agent-") as name:
        folder = Path(name)
        with Cluster.start(folder / "cluster", 1) as cluster:
            (broker,) = cluster.brokers
            settings = _settings(cluster, broker, folder)
            checked = _check(settings, folder)
            with RunningAgent(settings, folder / "run", text=True) as agent:
                logged = _outage(agent, broker)
    for line in (*checked, *logged):
        log(line)
    return {"log_lines_per_outage": len(logged), "check_lines": len(checked)}


def _settings(cluster: Cluster, broker: Node, folder: Path) -> dict[str, Any]:
    """Return a configuration with the default families and intervals."""
    settings = agent_config(cluster, broker, folder / "lake", folder)
    delays = {"memory", "refresh"}  # of the broker's settings
    settings["families"] = {
        name: {key: value for key, value in family.items() if key in delays}
        for name, family in settings["families"].items()
        if delays & family.keys()
    }
    settings["window"] = "5m"
    settings["health"] = {"port": free_ports(1)[0]}
    for section in (settings["source"]["jmx"], settings["admin"]):
        section["timeout"] = "30s"  # a busy machine is slower, not wrong
    return settings


def _check(settings: dict[str, Any], folder: Path) -> list[str]:
    """Return the lines of the first check that succeeds: a broker may need time to start."""
    config = folder / "check.yaml"
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = [script("jmxlake-agent"), "check", "-c", str(config)]
    ran: list[subprocess.CompletedProcess[str]] = []

    def succeeds() -> bool:
        ran.append(subprocess.run(command, capture_output=True, text=True, check=False))
        return ran[-1].returncode == 0

    wait_for(succeeds, _SECONDS, lambda: ran[-1].stdout + ran[-1].stderr)
    return (ran[-1].stdout + ran[-1].stderr).splitlines()


def _outage(agent: RunningAgent, broker: Node) -> list[str]:
    """Kill the broker until every family failed, start it, and return the lines of the log."""
    families = _families(agent)
    wait_for(lambda: all(map(agent.scrapes, families)), _SECONDS)
    before = len(agent.log.read_text("utf-8").splitlines())
    broker.kill()
    failed = {family: _failures(agent, family) for family in families}
    wait_for(lambda: all(_failures(agent, one) > failed[one] for one in families), _SECONDS)
    good = {family: agent.scrapes(family) for family in families}
    broker.start()
    wait_for(lambda: all(agent.scrapes(one) > good[one] for one in families), _SECONDS)
    wait_for(lambda: "scrape_recovered" in agent.log.read_text("utf-8"), _SECONDS)
    return agent.log.read_text("utf-8").splitlines()[before:]


def _families(agent: RunningAgent) -> set[str]:
    agent.wait_ready()
    samples = agent.samples("jmxlake_agent_interval_seconds")
    return {sample.labels["family"] for sample in samples}


def _failures(agent: RunningAgent, family: str) -> float:
    name = "jmxlake_agent_scrapes_total"
    return sum(agent.value(name, family=family, outcome=one) or 0 for one in _FAILURES)
