"""The agents of the demo: one per node, as in production, each a process of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from collector.errors import SpoolError
from collector.spool.spool import Spool
from demo.errors import DemoError
from demo.java import QUIET, from_archive
from demo.launcher import kill, last_lines
from demo.ports import free_ports
from demo.properties import THROTTLE_MEMORY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.cluster import Cluster
    from demo.node import Node

WINDOW = "30s"
# A demo of minutes reads more often than production, whose cadences are the catalogue's.
INTERVALS = {
    "min_isr": "2s",
    "controller": "2s",
    "quotas": "2s",
    "client_rates": "2s",
    "tiered": "2s",
    "leaders": "2s",
    "remote_reads": "5s",
    "requests": "2s",
    "offsets": "5s",
    "tiered_offsets": "10s",
    "log": "10s",
    "log_offsets": "10s",
    "quota_limits": "10s",
    "topology": "10s",
}
_GRACE_SECONDS = 180
_START_SECONDS = 600
_READ_SECONDS = 240
_STARTS_TO_DELIVER = 5
"""So often an agent is started again to deliver what it still held as it ended."""

_STARTED = "agent_started"  # a line of its log
_ATTEMPTS = "jmxlake_agent_scrape_duration_seconds_count"
_OUTCOMES = "jmxlake_agent_scrapes_total"
_WAITING = "jmxlake_agent_spool_batches"


class Agents:
    """One running agent per node; their folder holds configurations, spools and logs.

    Args:
        cluster: The nodes.
        lake: Where they write to.
        folder: Theirs.
        families: Further families that are read, each every two seconds.
        catalogue: Folder of further families of an operator.
    """

    def __init__(
        self,
        cluster: Cluster,
        lake: Path,
        folder: Path,
        families: Sequence[str] = (),
        catalogue: Path | None = None,
    ) -> None:
        self._cluster = cluster
        self._lake = lake
        self._folder = folder
        self._catalogue = catalogue
        self._families = {name: {"enabled": True, "interval": "2s"} for name in families}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ports: dict[str, int] = {}

    def start(self) -> None:
        """Start them all; returns before they have read anything."""
        for node in self._cluster.nodes.values():
            folder = self._folder / node.plan.name
            folder.mkdir(parents=True)
            config = folder / "agent.yaml"
            settings = agent_config(self._cluster, node, self._lake, folder)
            settings["families"] |= self._families
            (port,) = free_ports(1)
            settings["health"] = {"port": port}
            self._ports[node.plan.name] = port
            settings |= {"catalogue": str(self._catalogue)} if self._catalogue else {}
            config.write_text(yaml.safe_dump(settings))
            self._run(node.plan.name)

    def _run(self, name: str) -> None:
        folder = self._folder / name
        command = [script("jmxlake-agent"), "run", "--config", str(folder / "agent.yaml")]
        self._running[name] = self._cluster.launcher.start(command, _log(folder))

    def await_started(self) -> None:
        """Wait until all read on schedule: on a busy machine their start takes its time.

        Raises:
            DemoError: One has ended, or has not started in time; the end of its log is told.
        """
        deadline = time.monotonic() + _START_SECONDS
        for name in self._running:
            while _STARTED not in _log(self._folder / name).read_text(errors="replace"):
                self.check()
                if time.monotonic() > deadline:
                    log = last_lines(_log(self._folder / name))
                    raise DemoError(f"The agent of {name} did not start in time:\n{log}")
                time.sleep(0.2)

    def await_read(self) -> None:
        """Wait until each agent has tried to read each family anew, from now on.

        Raises:
            DemoError: One has ended, or has not tried in time.
        """
        before = {name: self._samples(name, _ATTEMPTS) for name in self._running}
        deadline = time.monotonic() + _READ_SECONDS
        while late := [name for name in before if not self._has_read(name, before[name])]:
            self.check()
            if time.monotonic() > deadline:
                raise DemoError(f"Agents did not read all in {_READ_SECONDS} s: {', '.join(late)}.")
            time.sleep(0.2)

    def await_well(self) -> bool:
        """Wait until each agent has read well anew what it could read before, some minutes at most.

        What a group lost while it was not answered for is only known by the next reading.
        """
        before = {name: self._well(name) for name in self._running}
        deadline = time.monotonic() + _READ_SECONDS
        while not all(self._has_read_well(name, before[name]) for name in before):
            self.check()
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def _has_read_well(self, name: str, before: Mapping[str, float]) -> bool:
        now = self._well(name)
        return all(now.get(read, 0.0) >= count + 2 for read, count in before.items())

    def _well(self, name: str) -> dict[str, float]:
        return {
            read: count
            for read, count in self._samples(name, _OUTCOMES).items()
            if 'outcome="ok"' in read
        }

    def _has_read(self, name: str, before: Mapping[str, float]) -> bool:
        now = self._samples(name, _ATTEMPTS)
        # Two: the first of them may have been under way.
        return bool(now) and all(now[read] >= before.get(read, 0.0) + 2 for read in now)

    def _samples(self, name: str, metric: str) -> dict[str, float]:
        """A metric that the agent tells of itself, by labels; empty: it does not tell yet."""
        url = f"http://127.0.0.1:{self._ports[name]}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                page = answer.read().decode()
        except OSError:
            return {}
        found = re.findall(rf"^{metric}(\{{.*\}}|) (\S+)$", page, re.MULTILINE)
        return {labels: float(value) for labels, value in found}

    def check(self) -> None:
        """Make sure that all still run.

        Raises:
            DemoError: One has ended.
        """
        for name, process in self._running.items():
            if process.poll() is not None:
                raise DemoError(self._how_it_ended(name, process.returncode))

    def _how_it_ended(self, name: str, code: int) -> str:
        return f"The agent of {name} ended with {code}; see {_log(self._folder / name)}."

    def stop(self) -> None:
        """Ask all to end, and wait until all that they have read is in the lake.

        An agent that ends tries for half a minute only; one that still holds something is started
        again to deliver it.

        Raises:
            DemoError: One ended with an error, or not in time, or holds what it could not deliver.
        """
        faults = self._end(list(self._running))
        for _ in range(_STARTS_TO_DELIVER):
            held = [name for name in self._running if name not in faults and self._holds(name)]
            for name in held:
                self._run(name)
            self._await_delivered(held)
            faults |= self._end(held)
        for name in self._running.keys() - faults.keys():
            if batches := self._holds(name):
                faults[name] = f"The agent of {name} could not deliver {batches} batches."
        if faults:
            raise DemoError(" ".join(faults.values()))

    def _end(self, names: Sequence[str]) -> dict[str, str]:
        """Ask agents to end and wait for that; those that did not end well, and how."""
        deadline = time.monotonic() + _GRACE_SECONDS
        codes = {name: self._running[name].poll() for name in names}
        for name in names:
            self._running[name].terminate()
        faults = {}
        for name, ended_before in codes.items():
            try:
                code = self._running[name].wait(max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                kill(self._running[name])
                faults[name] = f"The agent of {name} did not end in time."
                continue
            if code or ended_before is not None:
                faults[name] = self._how_it_ended(name, code)
        return faults

    def _await_delivered(self, names: Sequence[str]) -> None:
        """Wait until none of these agents holds a batch, some minutes at most."""
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline and any(
            self._running[name].poll() is None
            and set(self._samples(name, _WAITING).values()) != {0}
            for name in names
        ):
            time.sleep(0.5)

    def _holds(self, name: str) -> int:
        """How many batches an agent that has ended holds."""
        try:
            with Spool(self._folder / name / "spool.db", 1 << 40) as spool:
                return spool.depth().batches
        except SpoolError as error:
            raise DemoError(f"The spool of {name} cannot be read: {error}") from error

    def kill(self) -> None:
        """Kill what still runs."""
        for process in self._running.values():
            kill(process)


def agent_archive(libs: Path) -> Path:
    """Where an archive of the classes that an agent's Java loads may lie, beside Kafka's jars."""
    return libs / "agent.jsa"


def agent_config(cluster: Cluster, node: Node, lake: Path, folder: Path) -> dict[str, Any]:
    """The configuration of one node's agent; ``folder`` is where it may keep its spool."""
    facts = node.describe()
    config: dict[str, Any] = {
        "source": {
            "node": node.plan.id,
            "role": node.plan.role,
            "cluster": cluster.id,
            "jmx": {
                "port": node.jmx_port,
                "user": facts["jmx_role"],
                "password_file": facts["jmx_password_file"],
            },
        },
        "lake": {"path": str(lake), "commit_interval": "10s"},
        "spool": {"path": str(folder / "spool.db")},
        "health": {"port": 0},  # agents side by side would take each other's port
        "window": WINDOW,
        "families": {name: {"interval": interval} for name, interval in INTERVALS.items()},
    }
    config["families"]["log_offsets"]["enabled"] = True
    config["families"]["quotas"]["memory"] = f"{THROTTLE_MEMORY_SECONDS}s"
    config["families"]["remote_reads"]["memory"] = f"{THROTTLE_MEMORY_SECONDS}s"
    config["families"]["tiered"]["refresh"] = "1s"  # remote.log.manager.task.interval.ms
    if node.plan.role == "broker":
        config["admin"] = {"bootstrap": cluster.bootstrap, "libs": str(cluster.libs)}
        if options := from_archive(agent_archive(cluster.libs)):
            config["java"] = {"options": " ".join((*options, QUIET))}
    return config


def script(name: str) -> str:
    """A command of this virtual environment.

    Raises:
        DemoError: It is not installed.
    """
    found = shutil.which(name, path=str(Path(sys.executable).parent))
    if found is None:
        raise DemoError(f"{name} is not installed beside {sys.executable}: run make setup.")
    return found


def _log(folder: Path) -> Path:
    return folder / "agent.log"
