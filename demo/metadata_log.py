"""When partitions were under min ISR, leaderless and the like, from the controller's own log.

Independent of JMX and of the agents: Kafka's dump tool reads ``__cluster_metadata``, and every
change of a partition there carries the instant at which the controller decided it.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from demo.clock import iso
from demo.errors import DemoError
from demo.java import java_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_SECONDS = 120
_RECORD = re.compile(r"^\| offset: \d+ CreateTime: (\d+) .*? payload: (\{.*\})$")
_DEFAULT_MIN_ISR = 1
_NO_LEADER = -1
_RECOVERING, _SAME = 1, -1  # leaderRecoveryState
_UNCHANGED = -2  # how a change record says that the leader stays

Span = tuple[float, float]

KINDS = (
    "under_min_isr", "leaderless", "under_replicated", "without_spare", "reassigning",
    "unclean_leader",
)  # fmt: skip
"""What a partition may be."""


@dataclass
class _Partition:
    """One partition as the records so far leave it, and when it was unwell."""

    topic: str
    number: int
    replicas: list[int]
    isr: list[int]
    leader: int
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    recovering: bool = False
    removed: bool = False
    since: dict[str, float] = field(default_factory=dict)
    spans: defaultdict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))


def read_log(libs: Path, log_dir: Path) -> list[tuple[float, dict[str, Any]]]:
    """All records of a node's metadata log with their instants, in seconds since the epoch.

    Raises:
        DemoError: The log could not be read.
    """
    logs = sorted((log_dir / "__cluster_metadata-0").glob("*.log"))
    ran = subprocess.run(
        java_command(
            *("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{libs}/*"),
            *("org.apache.kafka.tools.DumpLogSegments", "--cluster-metadata-decoder"),
            *("--files", ",".join(map(str, logs))),
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if ran.returncode != 0 or not logs:
        raise DemoError(f"The metadata log in {log_dir} could not be read: {ran.stderr[-300:]}")
    found = (_RECORD.match(line) for line in ran.stdout.splitlines())
    return [(int(match[1]) / 1000, json.loads(match[2])) for match in found if match]


def partition_truth(
    records: Iterable[tuple[float, dict[str, Any]]], start: float, end: float
) -> dict[str, list[dict[str, Any]]]:
    """What truth.json says of partitions, clipped to [start, end) in seconds since the epoch.

    ``leaderless`` counts a partition while it has no leader, all others only while it has one, as
    beans do. ``*_any`` are the unions over a topic's partitions.
    """
    history = _History()
    for at, record in records:
        history.apply(at, record["type"], record["data"])
    history.settle(end)
    truth: dict[str, list[dict[str, Any]]] = {}
    for kind in KINDS:
        by_topic: defaultdict[str, list[Span]] = defaultdict(list)
        truth[kind] = []
        for partition in history.partitions.values():
            for span in _clip(partition.spans[kind], start, end):
                by_topic[partition.topic].append(span)
                truth[kind].append(
                    {"topic": partition.topic, "partition": partition.number, **_fact(span)}
                )
        truth[f"{kind}_any"] = [
            {"topic": topic, **_fact(span)}
            for topic, spans in by_topic.items()
            for span in _union(spans)
        ]
    return truth


class _History:
    """Applies records one by one, as a broker does that replays the log."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], _Partition] = {}
        self._topics: dict[str, str] = {}
        self._min_isr: dict[str, int] = {}  # by topic; "" is the cluster's default
        self._appliers: dict[str, Callable[[dict[str, Any]], None]] = {
            "TOPIC_RECORD": self._topic,
            "REMOVE_TOPIC_RECORD": self._removed,
            "CONFIG_RECORD": self._config,
            "PARTITION_RECORD": self._partition,
            "PARTITION_CHANGE_RECORD": self._change,
        }

    def apply(self, at: float, kind: str, data: dict[str, Any]) -> None:
        if applier := self._appliers.get(kind):
            applier(data)
            self.settle(at, closing=False)

    def settle(self, at: float, *, closing: bool = True) -> None:
        """Open and close spans by the state that holds from ``at`` on."""
        for partition in self.partitions.values():
            leaderless = partition.leader == _NO_LEADER and not partition.removed
            wanted = self._min_isr.get(partition.topic, self._min_isr.get("", _DEFAULT_MIN_ISR))
            under = len(partition.isr) < min(wanted, len(partition.replicas))
            led = partition.leader != _NO_LEADER and not partition.removed
            own = set(partition.replicas) - set(partition.adding)
            state = (
                under and led,
                leaderless,
                led and len(partition.isr) < len(own),
                led and len(partition.isr) <= 1 < len(own),
                led and bool(partition.adding or partition.removing),
                led and partition.recovering,
            )
            for kind, holds in zip(KINDS, state, strict=True):
                if holds and not closing:
                    partition.since.setdefault(kind, at)
                elif kind in partition.since:
                    partition.spans[kind].append((partition.since.pop(kind), at))

    def _topic(self, data: dict[str, Any]) -> None:
        self._topics[data["topicId"]] = data["name"]

    def _removed(self, data: dict[str, Any]) -> None:
        for (topic, _), partition in self.partitions.items():
            partition.removed |= topic == data["topicId"]
        self._min_isr.pop(self._topics[data["topicId"]], None)

    def _config(self, data: dict[str, Any]) -> None:
        of_topic, of_brokers = data["resourceType"] == 2, data["resourceType"] == 4
        default = of_brokers and data["resourceName"] == ""
        if data["name"] == "min.insync.replicas" and (of_topic or default):
            if data["value"] is None:
                self._min_isr.pop(data["resourceName"], None)
            else:
                self._min_isr[data["resourceName"]] = int(data["value"])

    def _partition(self, data: dict[str, Any]) -> None:
        key = data["topicId"], data["partitionId"]
        self.partitions[key] = _Partition(
            topic=self._topics[data["topicId"]],
            number=data["partitionId"],
            replicas=data["replicas"],
            isr=data["isr"],
            leader=data["leader"],
            adding=data.get("addingReplicas", []),
            removing=data.get("removingReplicas", []),
            recovering=data.get("leaderRecoveryState", 0) == _RECOVERING,
        )

    def _change(self, data: dict[str, Any]) -> None:
        partition = self.partitions[data["topicId"], data["partitionId"]]
        partition.isr = _given(data.get("isr"), partition.isr)
        partition.replicas = _given(data.get("replicas"), partition.replicas)
        partition.adding = _given(data.get("addingReplicas"), partition.adding)
        partition.removing = _given(data.get("removingReplicas"), partition.removing)
        if (state := data.get("leaderRecoveryState", _SAME)) != _SAME:
            partition.recovering = state == _RECOVERING
        if (leader := data.get("leader", _UNCHANGED)) != _UNCHANGED:
            partition.leader = leader


def _given(new: list[int] | None, old: list[int]) -> list[int]:
    return old if new is None else new


def _clip(spans: list[Span], start: float, end: float) -> Iterator[Span]:
    for first, last in spans:
        if max(first, start) < min(last, end):
            yield max(first, start), min(last, end)


def _union(spans: list[Span]) -> list[Span]:
    union: list[Span] = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end))
        else:
            union.append((start, end))
    return union


def _fact(span: Span) -> dict[str, Any]:
    start, end = span
    return {"start": iso(start), "end": iso(end), "us": round((end - start) * 1_000_000)}
