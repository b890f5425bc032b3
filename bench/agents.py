"""Real agents beside the broker: how much memory and processor they take."""

from __future__ import annotations

import statistics
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self

import duckdb
import psutil
import yaml
from deltalake import DeltaTable

from bench.beans import FAMILIES
from bench.installed import WITHOUT_SITE, environment
from bench.peak import anonymous_mb, peak_mb, resident_mb
from collector import catalogue
from demo.launcher import end, last_lines
from lakehouse.tables import DEFAULT_WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from demo.cluster import Cluster

_FASTER = 5
_FASTEST = 50  # what is read in milliseconds; above that ticks are skipped on a busy machine
_SHORT_SECONDS = 10  # a window must be longer than 2.5 intervals of every family
_GRACE_SECONDS = 60


@dataclass
class Memory:
    """Anonymous memory and resident set over time, in megabytes."""

    anonymous: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)

    @property
    def anonymous_mb(self) -> float:
        """The median of the last tenth, which has several deliveries."""
        return statistics.median(_last(self.anonymous, 10))

    @property
    def resident_mb(self) -> float:
        """The same of the resident set."""
        return statistics.median(_last(self.resident, 10))

    @property
    def growth_mb(self) -> float:
        """Anonymous memory of the last quarter less that of the second: a leak shows here."""
        second = _last(self.anonymous[: len(self.anonymous) // 2], 2)
        return statistics.median(_last(self.anonymous, 4)) - statistics.median(second)


def _last(series: list[float], share: int) -> list[float]:
    return series[-max(1, len(series) // share) :]


class Brokers(Protocol):
    """What an agent reads, and how it is configured for that."""

    cluster: Cluster

    def sections(self, folder: Path) -> dict[str, Any]:
        """Of an agent's configuration."""


class AgentProcess:
    """``jmxlake-agent run`` with a spool and a lake of its own.

    Args:
        broker: What it reads.
        folder: Where its files go.
        more: Further sections of its configuration, such as ``admin_section``.
        fast: Whether it does 10,000 scrapes in ten minutes: the families that are compared at a
            fiftieth of their cadence, the others, and the window, at a fifth.
        deliver_every: Length of its window and between its commits, where not the usual ones.
    """

    def __init__(
        self,
        broker: Brokers,
        folder: Path,
        *,
        more: Mapping[str, Any] | None = None,
        fast: bool = False,
        deliver_every: str | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lake = folder / "lake"
        self._log = folder / "agent.log"
        config = folder / "agent.yaml"
        made = _config(broker, folder, fast=fast) | dict(more or {})
        if deliver_every is not None:
            made["window"] = made["lake"]["commit_interval"] = deliver_every
            made["families"] = {
                family.name: {"interval": f"{_SHORT_SECONDS}s"}
                for family in catalogue.load().families
                if family.cadence_seconds > _SHORT_SECONDS
            }
        config.write_text(yaml.safe_dump(made))
        module = "bench.fast_agent" if fast else "collector.cli.main"
        command = [sys.executable, WITHOUT_SITE, "-m", module, "run", "--config", str(config)]
        packages = environment(folder / "packages")
        self._process = broker.cluster.launcher.start(command, self._log, packages)
        self._watched = psutil.Process(self._process.pid)
        self.memory = Memory()

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        times = self._watched.cpu_times()
        return times.user + times.system

    def look(self) -> None:
        """Note its memory.

        Raises:
            RuntimeError: It has ended.
        """
        if self._process.poll() is not None:
            raise RuntimeError(f"the agent ended:\n{last_lines(self._log)}")
        self.memory.resident.append(resident_mb(self._process.pid))
        self.memory.anonymous.append(anonymous_mb(self._process.pid))

    def commits(self) -> int:
        """How many commits it has made to bronze/runs, its creation included."""
        return len(list((self._lake / "bronze" / "runs" / "_delta_log").glob("*.json")))

    def peak_mb(self) -> float:
        """The most that was ever resident."""
        return peak_mb(self._process.pid)

    def scrapes(self) -> int:
        """How many scrapes went well, as far as they are in the lake."""
        table = self._lake / "bronze" / "scrapes"
        if not DeltaTable.is_deltatable(str(table)):
            return 0
        files = DeltaTable(str(table)).file_uris()
        if not files:
            return 0
        counted = duckdb.execute(
            "SELECT sum(scrapes)::INT FROM read_parquet(?) WHERE outcome = 'ok'", [files]
        ).fetchone()
        return int(counted[0] or 0) if counted else 0

    def close(self) -> None:
        """Let it deliver what it has and end."""
        end(self._process, _GRACE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def admin_section(broker: Brokers) -> dict[str, Any]:
    """Return the section of the Admin client."""
    cluster = broker.cluster
    return {"admin": {"bootstrap": cluster.bootstrap, "libs": str(cluster.libs)}}


def _config(broker: Brokers, folder: Path, *, fast: bool) -> dict[str, Any]:
    config = {**broker.sections(folder), "health": {"port": 0}}
    if fast:
        config["window"] = f"{DEFAULT_WINDOW_SECONDS // _FASTER}s"
        config["lake"]["commit_interval"] = "1s"
        config["families"] = {
            family.name: {"interval": f"{family.cadence_seconds * 1000 // _times(family.name)}ms"}
            for family in catalogue.load().families
        }
        config["families"]["quotas"]["memory"] = f"{60_000 // _FASTEST}ms"
    return config


def _times(family: str) -> int:
    return _FASTEST if family in FAMILIES else _FASTER
