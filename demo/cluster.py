"""A real KRaft cluster as processes on loopback: one controller and some brokers."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demo.errors import DemoError
from demo.jars import kafka_libs
from demo.launcher import Launcher, last_lines
from demo.node import Node, random_id
from demo.ports import free_ports, is_listening
from demo.properties import (
    CONTROLLER_ID,
    RACKS,
    SASL_USERS,
    THROTTLE_MEMORY_SECONDS,
    NodePlan,
    broker_properties,
    controller_properties,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

READY_SECONDS = 600


class Cluster:
    """A running cluster; a context manager that leaves no process behind.

    Attributes:
        id: Kafka's cluster id.
        folder: Where everything of it lies: configurations, logs, data, remote segments.
        nodes: By node id: 3000 is the controller, 1, 2, ... are the brokers.
        libs: The folder of Kafka's jars.
    """

    def __init__(self, folder: Path, plans: list[NodePlan], libs: Path | None = None) -> None:
        self.id = random_id()
        self.folder = folder.resolve()
        self.remote_folder = self.folder / "remote"
        self.libs = libs or kafka_libs()
        self.launcher = Launcher()
        self.nodes = {plan.id: Node(plan, self.libs, self.launcher) for plan in plans}

    @classmethod
    def start(
        cls,
        folder: Path,
        brokers: int = 3,
        *,
        jmx: bool = True,
        jolokia: bool = False,
        extra: Mapping[str, str] | Callable[[NodePlan], Mapping[str, str]] | None = None,
        jvm_options: Callable[[NodePlan], Sequence[str]] | None = None,
        libs: Path | None = None,
    ) -> Self:
        """Start a cluster in a folder that is empty or not there yet; returns when it is ready.

        Args:
            folder: Where it lives.
            brokers: How many brokers, numbered from 1.
            jmx: Whether the nodes have a JMX port.
            jolokia: Whether the nodes have a Jolokia agent.
            extra: Settings for the brokers' server.properties, over the demo's own: the same for
                each, or a function of the broker's plan.
            jvm_options: Further options of each node's JVM, such as a javaagent; they win over the
                demo's own. The node's folder may be used in them, and is there when it starts.
            libs: Folder with the jars of another Kafka than the demo's.

        Raises:
            DemoError: A node ended, or was not ready in ten minutes; the end of its log is given.
        """
        controller, *others = _plans(folder.resolve(), brokers, jmx=jmx, jolokia=jolokia)
        if extra is not None:
            of_each = extra if callable(extra) else lambda _: extra
            others = [replace(plan, extra=of_each(plan)) for plan in others]
        plans = [controller, *others]
        if jvm_options is not None:
            plans = [replace(plan, jvm_options=tuple(jvm_options(plan))) for plan in plans]
        cluster = cls(folder, plans, libs)
        try:
            cluster._format()
            for node in cluster.nodes.values():
                node.start()
            cluster.wait_ready()
        except BaseException:
            cluster.close()
            raise
        return cluster

    @property
    def brokers(self) -> list[Node]:
        """The brokers, by node id."""
        return [node for node in self.nodes.values() if node.plan.role == "broker"]

    @property
    def controller(self) -> Node:
        """The controller."""
        return self.nodes[CONTROLLER_ID]

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses without authentication."""
        return ",".join(f"127.0.0.1:{node.plan.port}" for node in self.brokers)

    @property
    def sasl_bootstrap(self) -> str:
        """The brokers' addresses for SASL_PLAINTEXT with PLAIN."""
        return ",".join(f"127.0.0.1:{node.plan.sasl_port}" for node in self.brokers)

    @property
    def controller_bootstrap(self) -> str:
        """The controller's address."""
        return f"127.0.0.1:{self.controller.plan.port}"

    def admin(self) -> AdminClient:
        """An Admin client of librdkafka that keeps quiet while brokers are away."""
        return _admin(self.bootstrap)

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until every JMX port answers and every broker tells of itself as a live one.

        Raises:
            DemoError: A node ended, or not all were ready in time.
        """
        deadline = time.monotonic() + seconds
        waiting = list(self.nodes.values())
        admins = {node.plan.id: _admin(f"127.0.0.1:{node.plan.port}") for node in self.brokers}
        while waiting := [node for node in waiting if not _is_ready(node, admins)]:
            ended = [node for node in self.nodes.values() if not node.alive]
            if ended or time.monotonic() > deadline:
                why = "ended" if ended else f"not ready after {seconds:.0f} s"
                node = (ended or waiting)[0]
                raise DemoError(f"{node.plan.name} {why}; its log:\n{last_lines(node.log)}")
            time.sleep(0.2)

    def describe(self) -> dict[str, object]:
        """Everything that agents, tests and people need to know of it, ready for JSON."""
        return {
            "cluster": self.id,
            "folder": str(self.folder),
            "bootstrap": self.bootstrap,
            "sasl_bootstrap": self.sasl_bootstrap,
            "controller_bootstrap": self.controller_bootstrap,
            "sasl_users": SASL_USERS,
            "libs": str(self.libs),
            "remote_folder": str(self.remote_folder),
            "throttle_memory_us": THROTTLE_MEMORY_SECONDS * 1_000_000,
            "nodes": [node.describe() for node in self.nodes.values()],
        }

    def close(self) -> None:
        """Kill every node. The data is a demo's: a slow, clean end would serve nobody."""
        for node in self.nodes.values():
            node.kill()
        self.launcher.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _format(self) -> None:
        first, *others = self.nodes.values()
        for node in (first, *others):
            node.prepare(self._properties(node))
        if first.format(self.id).wait(READY_SECONDS) != 0:
            raise DemoError(
                f"{first.plan.name} could not format {first.plan.log_dir}:\n{last_lines(first.log)}"
            )
        for node in others:
            node.format_like(first)

    def _properties(self, node: Node) -> dict[str, str]:
        if node.plan.role == "controller":
            return controller_properties(node.plan)
        plans = self.controller.plan, len(self.brokers), self.remote_folder
        return broker_properties(node.plan, *plans)


def _admin(bootstrap: str) -> AdminClient:
    settings: dict[str, Any] = {  # its own type of them knows no callback
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.max.ms": 500,
        "log_level": 0,
        "error_cb": lambda _: None,
    }
    return AdminClient(settings)


def _is_ready(node: Node, admins: Mapping[int, AdminClient]) -> bool:
    ports = (node.jmx_port, node.plan.jolokia_port)
    if not all(is_listening(port) for port in ports if port is not None):
        return False
    if node.plan.role == "controller":
        return True  # no broker registers before it works
    try:
        # The others would still list a broker that was killed a moment ago: only it knows.
        return node.plan.id in admins[node.plan.id].list_topics(timeout=1).brokers
    except KafkaException:
        return False


def _plans(folder: Path, brokers: int, *, jmx: bool, jolokia: bool) -> list[NodePlan]:
    if folder.exists() and any(folder.iterdir()):
        raise DemoError(f"{folder} is not empty: remove it or name another folder.")
    ports = iter(free_ports(3 + 4 * brokers))
    controller = NodePlan(
        id=CONTROLLER_ID,
        role="controller",
        folder=folder / f"controller-{CONTROLLER_ID}",
        port=next(ports),
        sasl_port=None,
        jmx_port=next(ports) if jmx else None,
        jolokia_port=next(ports) if jolokia else None,
    )
    return [
        controller,
        *(
            NodePlan(
                id=number,
                role="broker",
                folder=folder / f"broker-{number}",
                port=next(ports),
                sasl_port=next(ports),
                jmx_port=next(ports) if jmx else None,
                jolokia_port=next(ports) if jolokia else None,
                rack=RACKS[(number - 1) % len(RACKS)],
            )
            for number in range(1, brokers + 1)
        ),
    ]
