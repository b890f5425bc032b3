"""A broker as they are in production: many led partitions, tiered topics, clients with quotas.

Three brokers. The first leads everything and is the one that is read; the second follows, so that
partitions are healthy; the third is dead from the start. So ``min.insync.replicas`` decides alone
which partitions are under min ISR: 1 is healthy and 3 is not, for two of three replicas are in
sync.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from bench.peers import Target
from demo.cluster import Cluster
from demo.errors import DemoError
from demo.java_admin import Quota, set_quotas
from demo.launcher import end
from demo.node import JMX_ROLE

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from confluent_kafka.admin import AdminClient

    from demo.node import Node
    from demo.properties import NodePlan

LEADER, _FOLLOWER, _DEAD = 1, 2, 3
CLIENT_IDS = tuple(f"bench-{number}" for number in range(30))
"""Clients with quotas; the first is over its quota."""

BUSY = 10
"""So many of them write all the time; the others wrote once and are idle."""

_LIMITS = {"producer_byte_rate": 1e7, "consumer_byte_rate": 1e7, "request_percentage": 200.0}
_LOW_LIMIT = 20_000.0
_PARTITIONS = 20
_SMALL_PARTITIONS = 10  # of every fifth topic, so that 1 % of 1,000 is one topic
_TOPICS_AT_ONCE = 50
_SECONDS = 120
# What kafka-run-class.sh gives a broker, and a heap that fits the machine: the cluster of the demo
# has neither the second compiler nor a collector that works beside the threads.
_JVM = (
    *("-Xms1g", "-Xmx1g", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC"),
    *("-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    "-XX:+ExplicitGCInvokesConcurrent",
)
_PROPERTIES = {"metrics.sample.window.ms": "30000"}  # Kafka's default: throttle-time as it is


class LoadedBroker:
    """A cluster whose first broker leads as many partitions as one asks for."""

    def __init__(self, folder: Path, agents: tuple[str, ...] = ()) -> None:
        def options(plan: NodePlan) -> tuple[str, ...]:
            return (*_JVM, *agents) if plan.id == LEADER else ()

        self.cluster = Cluster.start(folder, 3, extra=_PROPERTIES, jvm_options=options)
        self.cluster.nodes[_DEAD].kill()
        self._await_fenced(_DEAD)  # until then it may be named to clients as the one to ask
        self.topics: list[tuple[str, int]] = []
        self._clients: subprocess.Popen[bytes] | None = None

    @property
    def node(self) -> Node:
        """The broker that is read."""
        return self.cluster.nodes[LEADER]

    def target(self, exporter_port: int) -> Target:
        """Return the address of the measured broker."""
        node = self.node
        port, password = node.jmx_port or 0, node.password_file
        return Target(str(node.plan.id), self.cluster.id, port, password, exporter_port)

    @property
    def remote_log_section(self) -> dict[str, Any]:
        """Return the section ``remote_log`` of an agent's configuration."""
        return {"remote_log": {"log_dirs": [str(self.node.plan.log_dir)]}}

    @property
    def partitions(self) -> int:
        """How many partitions of ours it leads."""
        return sum(count for _, count in self.topics)

    def sections(self, folder: Path) -> dict[str, Any]:
        """Of an agent's configuration: this broker by JMX, a lake and a spool in a folder."""
        jmx = {
            "port": self.node.jmx_port,
            "user": JMX_ROLE,
            "password_file": str(self.node.password_file),
        }
        return {
            "source": {"node": self.node.plan.id, "jmx": jmx},
            "lake": {"path": str(folder / "lake")},
            "spool": {"path": str(folder / "spool.db")},
        }

    def grow(self, partitions: int) -> None:
        """Create topics until there are so many partitions, and wait until they are replicated."""
        new = []
        while self.partitions < partitions:
            number = len(self.topics)
            count = _SMALL_PARTITIONS if number % 5 == 0 else _PARTITIONS
            count = min(count, partitions - self.partitions)
            topic = f"orders.region-{number:03}.events"
            self.topics.append((topic, count))
            new.append(_new_topic(topic, count, tiered=number % 10 == 0))
        admin = self.cluster.admin()
        for start in range(0, len(new), _TOPICS_AT_ONCE):
            some = new[start : start + _TOPICS_AT_ONCE]
            created = admin.create_topics(some, request_timeout=_SECONDS)
            for future in created.values():
                future.result(_SECONDS)
        self._await_in_sync()

    def start_clients(self) -> None:
        """Producers with quotas; some write all the time, and one is throttled."""
        for key, limit in _LIMITS.items():  # one after the other: Kafka takes one per client a time
            quotas = [Quota(key, limit, client_id=client) for client in CLIENT_IDS]
            set_quotas(self.cluster, quotas)
        set_quotas(self.cluster, [Quota("producer_byte_rate", _LOW_LIMIT, client_id=CLIENT_IDS[0])])
        topics = [topic for topic, _ in self.topics[:5]]
        command = [sys.executable, "-m", "bench.clients", self.cluster.bootstrap, *topics]
        log = self.cluster.folder / "clients.log"
        self._clients = self.cluster.launcher.start(command, log)

    def set_under_min_isr(self, share: float) -> int:
        """Put this share of the partitions under min ISR, the others not; how many they are."""
        wanted, taken = round(self.partitions * share), 0
        settings = {}
        for topic, count in sorted(self.topics, key=lambda pair: (pair[1], pair[0])):
            under = taken + count <= wanted
            taken += count if under else 0
            settings[topic] = "3" if under else "1"
        self._configure(settings)
        return taken

    def close(self) -> None:
        """End everything."""
        if self._clients is not None:
            end(self._clients, grace=5)
        self.cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _await_fenced(self, node: int) -> None:
        admin = self.cluster.admin()
        until = time.monotonic() + _SECONDS
        while self._is_named(node, admin):
            if time.monotonic() > until:
                raise DemoError(f"broker {node} is dead and still named after {_SECONDS} s")
            time.sleep(0.5)

    @staticmethod
    def _is_named(node: int, admin: AdminClient) -> bool:
        try:
            return node in admin.list_topics(timeout=_SECONDS).brokers
        except KafkaException:  # it was the one that was asked
            return True

    def _await_in_sync(self) -> None:
        admin = self.cluster.admin()
        topics = {topic for topic, _ in self.topics}
        until = time.monotonic() + _SECONDS
        while True:
            listed = admin.list_topics(timeout=_SECONDS).topics
            if all(_is_settled(listed.get(topic)) for topic in topics):
                return
            if time.monotonic() > until:
                raise TimeoutError(f"topics are not replicated after {_SECONDS} s")
            time.sleep(0.5)

    def _configure(self, min_in_sync: dict[str, str]) -> None:
        change = AlterConfigOpType.SET
        admin = self.cluster.admin()  # kept in a name: without it the futures fail
        resources = [
            ConfigResource(
                ConfigResource.Type.TOPIC,
                topic,
                incremental_configs=[
                    ConfigEntry("min.insync.replicas", value, incremental_operation=change)
                ],
            )
            for topic, value in min_in_sync.items()
        ]
        for result in admin.incremental_alter_configs(resources).values():
            result.result(_SECONDS)


def _new_topic(topic: str, partitions: int, *, tiered: bool) -> NewTopic:
    config = {"min.insync.replicas": "1"}
    if tiered:
        config["remote.storage.enable"] = "true"
    replicas = [[LEADER, _FOLLOWER, _DEAD]] * partitions
    return NewTopic(topic, partitions, replica_assignment=replicas, config=config)


def _is_settled(topic: object) -> bool:
    partitions = getattr(topic, "partitions", {}).values()
    return bool(partitions) and all(
        partition.leader == LEADER and set(partition.isrs) == {LEADER, _FOLLOWER}
        for partition in partitions
    )
