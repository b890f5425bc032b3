"""The agents of the demo: one per node, as in production, each a process of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from demo.errors import DemoError
from demo.java import QUIET, from_archive
from demo.launcher import kill, last_lines
from demo.properties import THROTTLE_MEMORY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_START_SECONDS = 180
_STARTED = "agent started"  # a line of its log


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

    def start(self) -> None:
        """Start them all; returns before they have read anything."""
        for node in self._cluster.nodes.values():
            folder = self._folder / node.plan.name
            folder.mkdir(parents=True)
            config = folder / "agent.yaml"
            settings = agent_config(self._cluster, node, self._lake, folder)
            settings["families"] |= self._families
            settings |= {"catalogue": str(self._catalogue)} if self._catalogue else {}
            config.write_text(yaml.safe_dump(settings))
            command = [script("jmxlake-agent"), "run", "--config", str(config)]
            process = self._cluster.launcher.start(command, _log(folder))
            self._running[node.plan.name] = process

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

    def check(self) -> None:
        """Make sure that all still run.

        Raises:
            DemoError: One has ended; the end of its log is told.
        """
        for name, process in self._running.items():
            if process.poll() is not None:
                log = last_lines(_log(self._folder / name))
                raise DemoError(f"The agent of {name} ended with {process.returncode}:\n{log}")

    def stop(self) -> None:
        """Ask all to end (they bring what they hold to the lake first), and wait for that.

        Raises:
            DemoError: One ended with an error.
        """
        self.check()
        deadline = time.monotonic() + _GRACE_SECONDS
        for process in self._running.values():
            process.terminate()
        for name, process in self._running.items():
            self._await(name, process, max(1.0, deadline - time.monotonic()))

    def _await(self, name: str, process: subprocess.Popen[bytes], seconds: float) -> None:
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            log = last_lines(_log(self._folder / name))
            raise DemoError(f"The agent of {name} did not end in time:\n{log}") from error
        if code:
            log = last_lines(_log(self._folder / name))
            raise DemoError(f"The agent of {name} ended with {code}:\n{log}")

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
