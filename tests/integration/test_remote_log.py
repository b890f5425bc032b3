"""The remote log of a real broker, read by a real agent: bronze has the store's own account.

An upload hangs while the agent is killed and started again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import duckdb
import pytest
import yaml
from deltalake import DeltaTable

from collector import catalogue
from demo.agents import agent_config, script
from demo.clients import fill
from demo.cluster import Cluster
from demo.launcher import end, kill
from demo.tier_plugin import Fault, TierEvent, account, fault
from demo.topics import create_assigned
from tests.waiting import wait_for

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

SEGMENT = 1_048_576
TIERED = {
    "remote_storage_enable": "true", "segment_bytes": str(SEGMENT), "local_retention_bytes": "1",
}  # fmt: skip
S = 1_000_000
LATE_US = S
"""Time from the end of the store's work until the broker has recorded it."""


class Run(NamedTuple):
    start: int
    end: int
    value: float


class Agent:
    """A real agent that reads only the remote log."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.lake, self.state = folder / "lake", folder / "spool.db.remote_log"
        self._cluster, self._log = cluster, folder / "agent.log"
        self._path = folder / "agent.yaml"
        settings = agent_config(cluster, cluster.nodes[1], self.lake, folder)
        settings["spool"] = {"path": str(folder / "spool.db")}
        settings["families"] = {one.name: {"enabled": False} for one in catalogue.load().families}
        settings["families"]["remote_log"] = {"interval": "2s"}
        settings["remote_log"] = {"log_dirs": [str(cluster.nodes[1].plan.log_dir)]}
        self._path.write_text(yaml.safe_dump(settings))
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it has read the topic and stored the state."""
        began_ns = time.time_ns()
        starts = self._started() + 1
        command = [script("jmxlake-agent"), "run", "--config", str(self._path)]
        self._running = self._cluster.launcher.start(command, self._log)
        wait_for(lambda: self._started() == starts, 60, self._log.read_text)
        wait_for(lambda: self.state.exists() and self.state.stat().st_mtime_ns > began_ns, 60)

    def kill(self) -> None:
        assert self._running
        kill(self._running)

    def stop(self) -> None:
        assert self._running
        assert end(self._running, 180) == 0, self._log.read_text()

    def runs(self, metric: str) -> list[Run]:
        files = DeltaTable(f"{self.lake}/bronze/runs").file_uris()
        if not files:
            return []
        rows = duckdb.read_parquet(files)
        assert rows
        found = duckdb.execute(
            'SELECT epoch_us("start"), epoch_us("end"), value FROM rows '
            "WHERE metric = ? AND topic = 'orders' ORDER BY 1",
            [metric],
        )
        return [Run(*row) for row in found.fetchall()]

    def _started(self) -> int:
        return self._log.read_text().count("agent_started") if self._log.exists() else 0


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Agent, list[TierEvent]]]:
    folder = tmp_path_factory.mktemp("remote")
    with Cluster.start(folder / "kafka", 1) as cluster:
        create_assigned(cluster, "orders", [[1]], **TIERED)
        fill(cluster.bootstrap, "orders", 1, 2.5)

        def copied() -> int:
            return sum(one.event == "copy_finished" for one in account(cluster.brokers))

        wait_for(lambda: copied() == 2, 60)
        agent = Agent(cluster, folder)
        agent.start()
        with fault(cluster, Fault.HANG_COPY):
            fill(cluster.bootstrap, "orders", 1, 2)
            agent.kill()
            agent.start()
            began = account(cluster.brokers)[-1].at_ms
            wait_for(lambda: account(cluster.brokers)[-1].at_ms == began, 1)
            agent.stop()
            agent.start()
        wait_for(lambda: copied() == 4, 60)
        metric, after_us = "kafka.partition.remote.bytes", account(cluster.brokers)[-1].at_ms * 1000
        wait_for(lambda: any(one.end > after_us + LATE_US for one in agent.runs(metric)), 90)
        agent.stop()
        yield agent, account(cluster.brokers)


def test_copied_bytes_change_when_the_store_finished(told: tuple[Agent, list[TierEvent]]) -> None:
    agent, events = told
    runs = agent.runs("kafka.partition.remote.bytes")
    finished = [one for one in events if one.event == "copy_finished"]
    sizes = [sum(one.size for one in finished[:number]) for number in range(2, 5)]
    assert list(dict.fromkeys(run.value for run in runs)) == sizes
    for event, size in zip(finished[2:], sizes[1:], strict=True):
        (first,) = [run for run in runs if run.value == size][:1]
        assert event.at_ms * 1000 <= first.start <= event.at_ms * 1000 + LATE_US


def test_hanging_upload_is_lag_and_its_time_grows(told: tuple[Agent, list[TierEvent]]) -> None:
    agent, events = told
    hung = next(one for one in events if one.event == "copy_finished" and one.nanos > S)
    lag = [run for run in agent.runs("kafka.partition.upload_lag.bytes") if run.value]
    assert lag
    assert max(run.value for run in lag) >= hung.size
    running = [run.value for run in agent.runs("kafka.partition.upload_running.seconds")]
    assert max(running) > 1


def test_bronze_has_no_lag_after_the_last_copy(told: tuple[Agent, list[TierEvent]]) -> None:
    agent, events = told
    after_us = events[-1].at_ms * 1000 + LATE_US
    for metric in ("kafka.partition.upload_lag.bytes", "kafka.partition.upload_running.seconds"):
        assert not [run for run in agent.runs(metric) if run.value and run.end > after_us]
