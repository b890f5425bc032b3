"""Tiered storage of two real brokers: the agent's figures against the storage plugin's own account.

Uploads hang and fail, deletions fail, a leader moves, a broker restarts and a topic is deleted. The
truth is the plugin's account and the names and sizes of the local files.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaException, TopicPartition

from collector import catalogue
from collector.errors import SourceError
from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.java import jvm
from collector.sources.remote_log.source import opened
from collector.sources.transports import Admin, RemoteLog
from demo.clients import consumer, fill
from demo.cluster import Cluster
from demo.jars import KAFKA, kafka_libs
from demo.tier_plugin import Fault, TierEvent, account, broker_account, fault
from demo.topics import configure, create_assigned, delete
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.model import Moment

VERSIONS: Final = (KAFKA, "4.3.1")
TOPIC: Final = "orders"
GONE: Final = "gone"
REPLICAS: Final = [[1, 2], [2, 1], [1, 2]]
SEGMENT: Final = 1_048_576
TIERED: Final = {
    "remote_storage_enable": "true", "segment_bytes": str(SEGMENT), "local_retention_bytes": "1",
}  # fmt: skip
FAMILY: Final = catalogue.load().family("remote_log")
CALLS: Final = {metric.name: str(metric.call) for metric in FAMILY.metrics}
SETTLE_SECONDS: Final = 40
LATE_MS: Final = 1_000
"""Time from the end of the plugin's work until the broker has recorded it."""

Figures = dict[tuple[str, int, str], float]
"""Values by topic, partition and call of the catalogue."""


class Copy(NamedTuple):
    """A copy of a segment, by the account of the broker that made it."""

    began: TierEvent
    broker: int
    ended: str


class Agent:
    """The source of one broker, and every value that it returned."""

    def __init__(self, cluster: Cluster, node: int, folder: Path) -> None:
        plan = cluster.nodes[node].plan
        self.history: list[tuple[int, Figures | None]] = []
        self.cpu_ms: list[float] = []
        self._source = opened(
            Expected("broker", str(node), cluster.id),
            RemoteLog(log_dirs=(plan.log_dir,)),
            lambda: self.history[-1][0] if self.history else 1,
            Admin(bootstrap=cluster.bootstrap, libs=cluster.libs, timeout=Duration("20s")),
            folder / f"spool-{node}.db",
        )

    def read(self) -> Figures | None:
        """Read once. None: the brokers did not respond."""
        began = time.process_time()
        try:
            self._source.identify()
            answer = self._source.read(FAMILY)
        except SourceError:
            return None
        self.cpu_ms.append((time.process_time() - began) * 1000)
        self.history += [(moment.at_us, _figures(moment)) for moment in answer.moments]
        return self.history[-1][1]

    def close(self) -> None:
        """Close the source."""
        self._source.close()


class Rig:
    """Two brokers, their agents and the truth about them.

    Attributes:
        figures: Number of compared figures.
        outside: Differences, in words.
        away: Start and end of the time in which a broker was away, ms.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.leaders = [replicas[0] for replicas in REPLICAS]
        self.figures = 0
        self.outside: list[str] = []
        self.away = (0, 0)
        self._agents = {node: Agent(cluster, node, folder) for node in (1, 2)}

    def read(self) -> Figures:
        """Return what the agents report, of each partition what its leader's agent reports."""
        found = {node: agent.read() or {} for node, agent in self._agents.items()}
        return {
            key: value
            for node, figures in found.items()
            for key, value in figures.items()
            if key[0] == TOPIC and self.leaders[key[1]] == node
        }

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait, and read meanwhile, so that the history has no gap."""

        def is_so() -> bool:
            self.read()
            return condition()

        wait_for(is_so, 60, every=0.5)

    def compare(self, step: str) -> None:
        """Compare all figures once the account and the agents are at rest."""
        until = time.monotonic() + SETTLE_SECONDS
        while True:
            before, found, truth = self.truth(), self.read(), self.truth()
            wrong = [key for key in truth if found.get(key) != truth[key]]
            if before == truth and (not wrong or time.monotonic() > until):
                break
            time.sleep(0.5)
        self.figures += len(truth)
        self.outside += [f"{step}: {key}: {found.get(key)}, not {truth[key]}" for key in wrong]
        print(f"{step}: {len(truth)} figures, {len(wrong)} differ", flush=True)

    def compare_running(self) -> None:
        """Compare the time for which uploads hang."""
        self.wait(lambda: all(map(self._hanging, range(len(REPLICAS)))))
        for partition in range(len(REPLICAS)):
            age = time.time() - self._hanging(partition)[-1].began.at_ms / 1000
            found = self.read().get((TOPIC, partition, "uploadRunning"), -1)
            self.figures += 1
            if not age - 1 <= found <= age + 5:
                self.outside.append(f"running {partition}: {found}, not {age}")

    def compare_orphans(self) -> None:
        """Compare segments of the deleted topic, which both agents report."""
        sizes = {one.segment: one.size for one in self._events(GONE) if _ends(one, "copy")}
        truth = {"orphanBytes": float(sum(sizes.values())), "orphanSegments": float(len(sizes))}
        for node, agent in self._agents.items():
            for call, value in truth.items():
                wait_for(lambda: (GONE, 0, call) in (agent.read() or {}), SETTLE_SECONDS)  # noqa: B023
                found = (agent.read() or {}).get((GONE, 0, call))
                self.figures += 1
                if found != value:
                    self.outside.append(f"orphans by {node}: {call} {found}, not {value}")

    def compare_instants(self) -> None:
        """Compare the instants at which copies ended with the account.

        While a broker is away, records become visible late: with the ISR of the metadata topic.
        """
        for node, agent in self._agents.items():
            for event in broker_account(self.cluster.nodes[node]):
                is_away = self.away[0] <= event.at_ms <= self.away[1]
                if event.topic == TOPIC and _ends(event, "copy") and not is_away:
                    seen = _rise(agent.history, event)
                    if seen is not None:
                        self.figures += 1
                        if not seen:
                            near = _nearby(agent.history, event)
                            self.outside.append(f"instant of {event}: {near}")

    def truth(self) -> Figures:
        """Return the figures by the account, the local files and the log starts."""
        return {
            (TOPIC, partition, call): float(value)
            for partition, leader in enumerate(self.leaders)
            for call, value in self._of_partition(partition, leader)
        }

    def _of_partition(self, partition: int, leader: int) -> Iterator[tuple[str, float]]:
        copies, events = self._copies(partition), self._events(TOPIC, partition)
        removing = {one.segment for one in events if one.event == "delete_started"}
        removed = {one.segment for one in events if _ends(one, "delete")}
        start = _log_start(self.cluster, partition)
        stored = [one.began for one in copies if one.ended == "copy_finished"]
        next_offset = max([start, *(one.last + 1 for one in stored)])
        kept = [one for one in stored if one.segment not in removed]
        marked = [one for one in kept if one.segment in removing or one.last < start]
        yield "remoteSegments", len(kept)
        yield "remoteBytes", sum(one.size for one in kept)
        yield "deleteLagSegments", len(marked)
        yield "deleteLagBytes", sum(one.size for one in marked)
        yield "deleteLagRecords", sum(one.last - one.first + 1 for one in marked)
        yield "deleteFailed", len(removing - removed)
        abandoned = [
            one.began
            for one in copies
            if not one.ended and one.began.segment not in removing
            and (one.broker != leader or one is not copies[-1])
        ]  # fmt: skip
        yield "abandonedBytes", sum(one.size for one in abandoned)
        folder = self.cluster.nodes[leader].plan.log_dir / f"{TOPIC}-{partition}"
        sizes = {int(one.stem): one.stat().st_size for one in sorted(folder.glob("*.log"))}
        waiting = [
            (max(first, next_offset), after, sizes[first])
            for first, after in zip(sorted(sizes), sorted(sizes)[1:], strict=False)
            if after > next_offset
        ]
        yield "uploadLagSegments", len(waiting)
        yield "uploadLagBytes", sum(size for _, _, size in waiting)
        yield "uploadLagRecords", sum(after - first for first, after, _ in waiting)
        yield "heldBackSegments", 0

    def _events(self, topic: str, partition: int = 0) -> list[TierEvent]:
        events = account(self.cluster.brokers)
        return [one for one in events if (one.topic, one.partition) == (topic, partition)]

    def _copies(self, partition: int) -> list[Copy]:
        """Return all copies by their start."""
        ends, copies = defaultdict(str), []
        for node in (1, 2):
            for event in broker_account(self.cluster.nodes[node]):
                if (event.topic, event.partition) == (TOPIC, partition):
                    if event.event == "copy_started":
                        copies.append((event, node))
                    elif event.event.startswith("copy_"):
                        ends[event.segment] = event.event
        return [Copy(event, node, ends[event.segment]) for event, node in sorted(copies)]

    def _hanging(self, partition: int) -> list[Copy]:
        """Return the copies of the leader that have not ended."""
        leader = self.leaders[partition]
        return [one for one in self._copies(partition) if one.broker == leader and not one.ended]

    def count(self, *kinds: str) -> int:
        """Return the number of lines of these kinds."""
        return sum(one.event in kinds for one in account(self.cluster.brokers))

    @property
    def is_copied(self) -> bool:
        """Whether every closed segment is in remote storage."""
        truth = self.truth()
        return all(not value for key, value in truth.items() if key[2] == "uploadLagSegments")

    @property
    def cpu_ms(self) -> float:
        """Median CPU time of a read in this process, Java's threads included."""
        return median(ms for agent in self._agents.values() for ms in agent.cpu_ms)

    def close(self) -> None:
        """Close the agents."""
        for agent in self._agents.values():
            agent.close()


def _log_start(cluster: Cluster, partition: int) -> int:
    """Return the first offset of a partition. The request is repeated while brokers move."""
    for left in reversed(range(20)):
        asked = consumer(cluster.bootstrap, "truth", "truth")
        try:
            start, _ = asked.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=20)
        except KafkaException:
            if not left:
                raise
            time.sleep(0.5)
        else:
            return int(start)
        finally:
            asked.close()
    raise AssertionError


def _ends(event: TierEvent, work: str) -> bool:
    return event.event == f"{work}_finished"


def _size_key(event: TierEvent) -> tuple[str, int, str]:
    return TOPIC, event.partition, "remoteBytes"


def _figures(moment: Moment) -> Figures | None:
    if moment.readings is None:
        return None
    return {
        (str(series.topic), series.partition or 0, CALLS[reading.metric]): value or 0.0
        for reading in moment.readings
        for series, value in (*dict.fromkeys(reading.zeros, 0.0).items(), *reading.values.items())
    }


def _nearby(history: list[tuple[int, Figures | None]], event: TierEvent) -> list[str]:
    """Return the sizes around a copy's end, with their distance in ms, for a person."""
    distances = [(at_us // 1000 - event.at_ms, values) for at_us, values in history]
    return [
        f"{distance}: {'unknown' if values is None else values.get(_size_key(event))}"
        for distance, values in distances
        if abs(distance) < 2 * LATE_MS
    ]


def _rise(history: list[tuple[int, Figures | None]], event: TierEvent) -> bool | None:
    """Return whether the size rose when a copy ended. None: that time is unknown."""
    key = _size_key(event)
    for (_, before), (at_us, after) in pairwise(history):
        if at_us >= event.at_ms * 1000:
            if before is None or after is None or key not in before or key not in after:
                return None
            if after[key] > before[key]:
                return at_us <= (event.at_ms + LATE_MS) * 1000
            if at_us > (event.at_ms + LATE_MS) * 1000:
                return False
    return None


def _story(rig: Rig) -> None:
    """Let everything happen that can happen to remote storage, and compare after each step."""
    cluster = rig.cluster

    def write(megabytes: float) -> None:
        fill(cluster.bootstrap, TOPIC, len(REPLICAS), megabytes)

    write(3.5)
    rig.wait(lambda: rig.is_copied)
    rig.compare("copied")
    with fault(cluster, Fault.HANG_COPY):
        write(2.5)
        rig.wait(lambda: not rig.is_copied)
        rig.compare("uploads hang")
        rig.compare_running()
    rig.wait(lambda: rig.is_copied)
    rig.compare("uploads continue")
    with fault(cluster, Fault.FAIL_COPY):
        write(2.5)
        rig.wait(lambda: rig.count("copy_failed") > 0)
        rig.compare("uploads fail")
    rig.wait(lambda: rig.is_copied)
    rig.compare("uploads recover")
    with fault(cluster, Fault.FAIL_DELETE):
        configure(cluster, TOPIC, {"retention.bytes": str(4 * SEGMENT)})
        rig.wait(lambda: rig.count("delete_failed") > len(REPLICAS))
        rig.compare("deletions fail")
    rig.wait(lambda: rig.truth()[TOPIC, 0, "deleteLagSegments"] == 0)
    rig.compare("deletions recover")
    with fault(cluster, Fault.HANG_COPY):
        write(2.5)
        rig.wait(lambda: not rig.is_copied)
        killed_ms = time.time_ns() // 1_000_000
        cluster.nodes[1].kill()
        rig.leaders = [2] * len(REPLICAS)
        rig.wait(lambda: len(rig.read()) > 0)
        rig.compare("leader moved")
    cluster.nodes[1].start()
    cluster.wait_ready()
    rig.wait(lambda: rig.is_copied)
    rig.compare("broker restarted")
    rig.away = killed_ms, time.time_ns() // 1_000_000
    with fault(cluster, Fault.FAIL_DELETE):
        delete(cluster, GONE)
        rig.compare_orphans()
    rig.compare("topic deleted")
    rig.compare_instants()


def of_version(version: str, folder: Path) -> dict[str, float]:
    """Measure one release. The JVM of this process has its jars."""
    libs = kafka_libs(version)
    with Cluster.start(folder / "kafka", 2, jmx=False, libs=libs) as cluster:
        jvm.start(libs, remote_log=True, timeout_seconds=30)
        create_assigned(cluster, TOPIC, REPLICAS, **TIERED)
        create_assigned(cluster, GONE, [[1, 2]], **TIERED)
        fill(cluster.bootstrap, GONE, 1, 3.5)
        rig = Rig(cluster, folder)
        try:
            _story(rig)
        finally:
            rig.close()
    for line in rig.outside:
        print(line, flush=True)
    return {
        "tier_figures": rig.figures,
        "tier_outside": len(rig.outside),
        "remote_log_cpu_ms": round(rig.cpu_ms, 1),
    }


def measured(folder: Path) -> dict[str, float]:
    """Return the sums over all releases, each in a process of its own, and the most CPU time."""
    results = []
    for version in VERSIONS:
        command = [sys.executable, "-m", __spec__.name, version, str(folder / version)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        *said, last = ran.stdout.splitlines()
        print("\n".join(f"{version}: {line}" for line in said), file=sys.stderr, flush=True)
        results.append(json.loads(last))
    sums = {name: sum(one[name] for one in results) for name in ("tier_figures", "tier_outside")}
    return {**sums, "remote_log_cpu_ms": max(one["remote_log_cpu_ms"] for one in results)}


def main() -> None:
    """Print the figures as a JSON line: of all releases, or of one in a folder."""
    if sys.argv[1:]:
        version, folder = sys.argv[1:]
        Path(folder).mkdir(parents=True)
        print(json.dumps(of_version(version, Path(folder))))
    else:
        with tempfile.TemporaryDirectory() as place:
            print(json.dumps(measured(Path(place))))


if __name__ == "__main__":
    main()
