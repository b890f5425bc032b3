"""The metadata log beside real brokers: bronze tells min ISR as the controllers' log does, to the
millisecond, also of the time when a broker was dead or an agent was not there.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pytest
import yaml
from deltalake import DeltaTable

from demo import hearing
from demo.agents import agent_config, script
from demo.cluster import Cluster
from demo.java_admin import set_broker_defaults
from demo.launcher import end, kill
from demo.metadata_log import partition_truth, read_log
from demo.topics import configure, create_assigned, delete, replicas_in_sync
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.waits]

UNDER = "kafka.partition.under_min_isr"
LEADERLESS = "kafka.partition.leaderless"
READ = {"metadata_log": "2s", "min_isr": "2s", "leaders": "2s"}
TOLD_SECONDS = 5 + 2  # what is not surely committed yet, and a cadence
BROKERS_LAG_US = 1_000_000
"""A broker shows a change a little after the controller decided it; how much later a busy machine
lets it hear of that its own log says.
"""
_WITHOUT = "--bounding-set=-dac_override,-dac_read_search"
_UNPRIVILEGED = ("setpriv", _WITHOUT) if os.geteuid() == 0 else ()  # root obeys permissions, too
Partition = tuple[str, int]
Spans = list[tuple[int, int]]


class Run(NamedTuple):
    source: str
    topic: str
    partition: int
    start: int
    end: int
    lead: int
    tail: int
    value: float


class Agents:
    """Real agents, one a broker, that are killed and stopped and started again."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.lake = folder / "lake"
        self._cluster, self._folder = cluster, folder
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._starts: Counter[int] = Counter()

    def start(self, node: int) -> None:
        folder = self._folder / f"agent-{node}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "agent.yaml"
        settings = agent_config(self._cluster, self._cluster.nodes[node], self.lake, folder)
        settings["families"] = _only(settings["families"])
        settings["metadata_log"] = {
            "folder": str(self._cluster.nodes[node].plan.log_dir),
            "libs": str(self._cluster.libs),
        }
        path.write_text(yaml.safe_dump(settings))
        command = [script("jmxlake-agent"), "run", "--config", str(path)]
        log = folder / "agent.log"
        self._running[node] = self._cluster.launcher.start(command, log)
        self._starts[node] += 1

    def await_started(self) -> None:
        """Wait until all that were started have caught up with the log, and read on schedule."""
        for node, starts in self._starts.items():
            log = self._folder / f"agent-{node}" / "agent.log"
            wait_for(lambda: log.read_text().count("agent_started") == starts, 60)  # noqa: B023

    def kill(self, node: int) -> None:
        kill(self._running[node])

    def stop(self, node: int) -> None:
        assert end(self._running[node], 180) == 0

    def end(self) -> None:
        for process in self._running.values():
            kill(process)


@dataclass
class Told:
    """What the lake tells, and the truth."""

    cluster: Cluster
    lake: Path
    start: int
    end: int
    truth: dict[str, list[dict[str, Any]]]
    heard_us: int
    """The longest that a leader took to hear of what the controller decided."""

    def runs(self, metric: str) -> list[Run]:
        """Every partition's runs, folded rows taken apart."""
        runs = duckdb.read_parquet(DeltaTable(f"{self.lake}/bronze/runs").file_uris())
        members = duckdb.read_parquet(DeltaTable(f"{self.lake}/bronze/members").file_uris())
        assert runs
        assert members  # DuckDB finds both by name
        rows = duckdb.execute(
            """
            SELECT source, topic, unnest(coalesce(partitions, [partition])) AS partition,
                epoch_us("start"), epoch_us("end"), lead_us, tail_us, value
            FROM runs LEFT JOIN (SELECT DISTINCT "set", partitions FROM members) ON members = "set"
            WHERE metric = ? ORDER BY "start"
            """,
            [metric],
        )
        return [Run(*row) for row in rows.fetchall()]

    def events(self, kind: str) -> list[tuple[str, int, int, str, str | None, str]]:
        """What was noticed of partitions: topic, partition, instant, by whom, before, after."""
        events = duckdb.read_parquet(DeltaTable(f"{self.lake}/bronze/events").file_uris())
        assert events
        return duckdb.execute(
            "SELECT topic, partition, epoch_us(events.at), source, old, new FROM events "
            "WHERE kind = ?",
            [kind],
        ).fetchall()

    def spans(self, metric: str) -> dict[Partition, Spans]:
        """When a partition was bad, whoever said so, within the time that all agents tell."""
        found: dict[Partition, Spans] = defaultdict(list)
        for run in self.runs(metric):
            span = max(run.start, self.start), min(run.end, self.end)
            if run.value and span[0] < span[1]:
                found[run.topic, run.partition].append(span)
        return {partition: _joined(spans) for partition, spans in found.items()}

    def true_spans(self, kind: str) -> dict[Partition, Spans]:
        found: dict[Partition, Spans] = defaultdict(list)
        for fact in self.truth[kind]:
            span = (_us(fact["start"]), _us(fact["end"]))
            found[fact["topic"], fact["partition"]].append(span)
        return {partition: _joined(spans) for partition, spans in found.items()}


def _only(families: dict[str, Any]) -> dict[str, Any]:
    names = {*families, "remote_reads", "topology"}
    return {
        name: {"interval": READ[name]} if name in READ else {"enabled": False}
        for name in {*names, *READ}
    }


def _joined(spans: Iterable[tuple[int, int]]) -> Spans:
    joined: Spans = []
    for start, end_ in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end_))
        else:
            joined.append((start, end_))
    return joined


def _us(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e6)


def leader_of(cluster: Cluster, topic: str) -> int:
    return int(cluster.admin().list_topics(topic, timeout=60).topics[topic].partitions[0].leader)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """A broker dies and comes back; agents are killed and stopped while the cluster changes."""
    folder = tmp_path_factory.mktemp("metadata")
    snapshots = {"metadata.log.max.record.bytes.between.snapshots": "3000"}
    with Cluster.start(folder / "kafka", 3, extra=snapshots) as cluster:
        create_assigned(cluster, "two", [[1, 2], [2, 3], [3, 1]], min_insync_replicas="2")
        create_assigned(cluster, "three", [[1, 2, 3], [3, 2, 1]])
        create_assigned(cluster, "gone", [[1, 3]], min_insync_replicas="2")
        create_assigned(cluster, "plain", [[1, 3]])
        create_assigned(cluster, "solo", [[3]])
        agents = Agents(cluster, folder)
        try:
            for node in (1, 2, 3):
                agents.start(node)
            _play(cluster, agents)
            agents.await_started()
            time.sleep(TOLD_SECONDS)
            for node in (1, 2, 3):
                agents.stop(node)
        finally:
            agents.end()
        yield tell(cluster, agents.lake)


def _play(cluster: Cluster, agents: Agents) -> None:
    agents.await_started()
    agents.stop(2)
    # While all is well: a change of min ISR takes away what a partition without a leader waits for.
    set_broker_defaults(cluster, {"min.insync.replicas": "2"})
    cluster.nodes[3].kill()
    wait_for(lambda: leader_of(cluster, "solo") == -1, 60)
    agents.kill(1)
    configure(cluster, "three", {"min.insync.replicas": "3"})
    delete(cluster, "gone")
    agents.start(1)
    agents.await_started()
    time.sleep(TOLD_SECONDS)  # Admin, too, is asked while nobody leads solo
    cluster.nodes[3].start()
    wait_for(lambda: leader_of(cluster, "solo") == 3, 60)
    agents.start(2)
    for topic, count in {"three": 3, "two": 2, "plain": 2}.items():
        wait_for(lambda: replicas_in_sync(cluster, topic) == count, 60)  # noqa: B023


def tell(cluster: Cluster, lake: Path) -> Told:
    scrapes = duckdb.read_parquet(DeltaTable(f"{lake}/bronze/scrapes").file_uris())
    assert scrapes
    (bounds,) = duckdb.execute(
        """
        SELECT max(first), min(last) FROM (
            SELECT epoch_us(min("start")) AS first, epoch_us(max("end")) AS last FROM scrapes
            WHERE family = 'metadata_log' AND outcome = 'ok' GROUP BY source
        )
        """
    ).fetchall()
    start, end_ = bounds
    records = read_log(cluster.libs, cluster.controller.plan.log_dir)
    within = start / 1e6, end_ / 1e6
    heard_us = hearing.slowest_us(records, [node.log for node in cluster.brokers], *within)
    return Told(cluster, lake, start, end_, partition_truth(records, *within), heard_us)


def test_truth_has_the_played_changes(told: Told) -> None:
    """Else the tests below would hold of nothing."""
    under, leaderless = told.true_spans("under_min_isr"), told.true_spans("leaderless")
    assert {("two", 1), ("two", 2), ("gone", 0), ("plain", 0), ("three", 0)} <= under.keys()
    assert ("solo", 0) in leaderless
    folder = told.cluster.nodes[1].plan.log_dir / "__cluster_metadata-0"
    assert list(folder.glob("*.checkpoint")), "no snapshot was made"


@pytest.mark.parametrize(("metric", "kind"), [(UNDER, "under_min_isr"), (LEADERLESS, "leaderless")])
def test_bronze_equals_controller_to_the_microsecond(told: Told, metric: str, kind: str) -> None:
    assert told.spans(metric) == told.true_spans(kind)


def test_exact_runs_have_no_edges_and_no_overlap(told: Told) -> None:
    ends: dict[tuple[str, str, int], int] = {}
    for run in told.runs(UNDER):
        key = (run.source, run.topic, run.partition)
        assert (run.lead, run.tail) == (0, 0)
        assert ends.get(key, 0) <= run.start
        ends[key] = run.end


def test_dead_broker_and_absent_agents_leave_no_gap(told: Told) -> None:
    seen: dict[Partition, Spans] = defaultdict(list)
    for run in told.runs(UNDER):
        seen[run.topic, run.partition].append((run.start, run.end))
    for number in range(3):
        spans = _joined(seen["two", number])
        assert spans[0][0] <= told.start
        assert spans[0][1] >= told.end
        assert len(spans) == 1
    (first, *_), *_ = [_joined(seen["gone", 0])]
    assert first[1] < told.end, "a topic that was deleted is not told of any longer"


def test_leaders_report_their_own_and_two_the_leaderless(told: Told) -> None:
    without = {run.source for run in told.runs(LEADERLESS) if run.value and run.topic == "solo"}
    assert without == {"broker-1", "broker-2"}
    leaders = {(run.topic, run.partition): set[str]() for run in told.runs(UNDER)}
    for run in told.runs(UNDER):
        leaders[run.topic, run.partition].add(run.source)
    assert leaders["two", 0] == {"broker-1"}
    assert "broker-3" in leaders["two", 2]
    assert len(leaders["two", 2]) == 2


def test_jmx_cross_check_agrees_within_its_bounds(told: Told) -> None:
    truth = told.true_spans("under_min_isr")
    well = {partition: _between(spans, told) for partition, spans in truth.items()}
    seen = Counter[float]()
    for run in told.runs(f"{UNDER}.jmx"):
        partition = run.topic, run.partition
        sure = max(run.start, told.start), min(run.end - run.tail, told.end)
        contrary = (
            truth.get(partition, [])
            if run.value == 0
            else well.get(partition, [(told.start, told.end)])
        )
        wrong = sum(max(0, min(sure[1], end_) - max(sure[0], start)) for start, end_ in contrary)
        assert wrong <= max(BROKERS_LAG_US, told.heard_us), run
        seen[run.value] += partition in truth
    assert seen[0] > 2
    assert seen[1] > 2
    assert {run.topic for run in told.runs(f"{LEADERLESS}.admin") if run.value} == {"solo"}


def _between(spans: Spans, told: Told) -> Spans:
    """The time outside of spans."""
    edges = [told.start, *(edge for span in spans for edge in span), told.end]
    return list(zip(edges[::2], edges[1::2], strict=True))


@pytest.fixture
def copied(told: Told) -> Iterator[Path]:
    """A copy of a broker's metadata log that nobody else touches, and nobody may write."""
    folder = Path(tempfile.mkdtemp())
    data = told.cluster.nodes[1].plan.log_dir
    unfinished = shutil.ignore_patterns("*.part", "*.tmp")  # the broker renames them any moment
    log = "__cluster_metadata-0"
    shutil.copytree(data / log, folder / "data" / log, ignore=unfinished)
    shutil.copy(data / "meta.properties", folder / "data")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield folder / "data"
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(folder)


def _once(told: Told, data: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What the command reads as a user who may not write."""
    settings = agent_config(told.cluster, told.cluster.nodes[1], Path("lake"), Path("spool"))
    settings["families"] = {
        name: {"enabled": False} for name in _only(settings["families"]) if name != "metadata_log"
    }
    settings["metadata_log"] = {"folder": str(data), "libs": str(told.cluster.libs)}
    del settings["admin"]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(settings, file)
        file.flush()
        return subprocess.run(
            [*_UNPRIVILEGED, script("jmxlake-agent"), "scrape", "--config", file.name, *options],
            capture_output=True, text=True, timeout=180, check=False,
            env={**os.environ, "COLUMNS": "300"},
        )  # fmt: skip


def _content(folder: Path) -> dict[str, Any]:
    return {
        str(path): (
            path.stat().st_mtime_ns,
            path.stat().st_ctime_ns,
            path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in [folder, *sorted(folder.rglob("*"))]
    }


def _values(printed: str) -> list[dict[str, Any]]:
    """What was read, without how each family went."""
    lines = [json.loads(line) for line in printed.splitlines()]
    return [line for line in lines if "metric" in line]


def test_read_permission_is_enough(told: Told, copied: Path) -> None:
    before = _content(copied)
    ran = _once(told, copied, "--json")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    at = _values(ran.stdout)
    assert {line["metric"] for line in at} <= {UNDER, LEADERLESS, "kafka.partition.at_min_isr"}
    assert any(line["metric"] == "kafka.partition.at_min_isr" for line in at)
    assert _content(copied) == before


def test_a_folder_that_may_not_be_read_is_one_line(told: Told, copied: Path) -> None:
    log = copied / "__cluster_metadata-0"
    for path in log.glob("*.log"):
        path.chmod(0)
    ran = _once(told, copied)
    assert ran.returncode == 1
    assert "permission denied; allow the agent's user to read the folder" in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr


def test_log_in_many_segments_reads_the_same(told: Told, copied: Path) -> None:
    whole = _once(told, copied, "--json", "--all")
    log = copied / "__cluster_metadata-0"
    (segment,) = log.glob("*.log")
    content = segment.read_bytes()
    for path in [log, segment, *log.glob("*.checkpoint")]:
        path.chmod(0o755)
    for path in [segment, *log.glob("*.checkpoint")]:
        path.unlink()
    batches = _batches(content)
    for first in range(0, len(batches), 10):
        (offset, start), *_ = batches[first:]
        _, end_ = batches[first + 10] if first + 10 < len(batches) else (0, len(content))
        (log / f"{offset:020d}.log").write_bytes(content[start:end_])
    parted = _once(told, copied, "--json", "--all")
    assert whole.returncode == parted.returncode == 0, parted.stderr
    assert _values(whole.stdout) == _values(parted.stdout)
    assert whole.stdout
    torn = max(log.glob("*.log"))
    torn.write_bytes(torn.read_bytes()[:-7])  # the broker is writing: no fault, only later
    again = _once(told, copied, "--json", "--all")
    assert _values(again.stdout) == _values(whole.stdout)


def _batches(content: bytes) -> list[tuple[int, int]]:
    """First offset and position of every batch."""
    found, position = [], 0
    while position < len(content):
        offset, length = struct.unpack_from(">qi", content, position)
        found.append((offset, position))
        position += 12 + length
    return found
