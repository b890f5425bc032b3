"""The nodes' server.properties: a real cluster, with times short enough for a demo of minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from demo.tier_plugin import storage_settings

CONTROLLER_ID = 3000
RACKS = "abc"
SASL_USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}

THROTTLE_MEMORY_SECONDS = 4
"""How long throttle-time stays after the last throttling: samples x window of the settings below.
Kafka's default is 60 s, longer than half of the demo."""


@dataclass(frozen=True)
class NodePlan:
    """What one node is and where it listens, fixed before any process starts."""

    id: int
    role: str
    folder: Path
    port: int
    sasl_port: int | None
    jmx_port: int | None
    rack: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    jvm_options: tuple[str, ...] = ()
    jolokia_port: int | None = None

    @property
    def name(self) -> str:
        """How the lake will call it: broker-1, controller-3000."""
        return f"{self.role}-{self.id}"

    @property
    def log_dir(self) -> Path:
        """Where the node keeps its partitions, the metadata log among them."""
        return self.folder / "data"


def controller_properties(plan: NodePlan) -> dict[str, str]:
    """server.properties of the controller."""
    return {
        "process.roles": "controller",
        "node.id": str(plan.id),
        "controller.quorum.voters": f"{plan.id}@127.0.0.1:{plan.port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{plan.port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "log.dirs": str(plan.log_dir),
        "broker.session.timeout.ms": "6000",
        # The controller stores nothing remotely; without this it refuses tiered topics.
        "remote.log.storage.system.enable": "true",
        **_METRICS,
        **plan.extra,
    }


def broker_properties(
    plan: NodePlan, controller: NodePlan, brokers: int, remote: Path
) -> dict[str, str]:
    """server.properties of a broker; ``remote`` is where the storage plugin keeps segments."""
    replicas = str(min(3, brokers))
    return {
        "process.roles": "broker",
        "node.id": str(plan.id),
        "broker.rack": str(plan.rack),
        "controller.quorum.voters": f"{controller.id}@127.0.0.1:{controller.port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(plan.log_dir),
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": replicas,
        "share.coordinator.state.topic.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": replicas,
        **_listeners(plan),
        **_tiering(replicas),
        **storage_settings(plan, remote),
        **_QUICK,
        **_SMALL,
        **_METRICS,
        **plan.extra,
    }


def as_text(properties: Mapping[str, str]) -> str:
    """The properties as Java reads them."""
    return "".join(f"{key}={value}\n" for key, value in properties.items())


_METRICS = {
    "metrics.num.samples": "2",
    "metrics.sample.window.ms": str(THROTTLE_MEMORY_SECONDS * 1000 // 2),
}

_QUICK = {
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
    "log.initial.task.delay.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
}

_SMALL = {
    "background.threads": "4",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "num.io.threads": "4",
    "num.network.threads": "2",
    "num.recovery.threads.per.data.dir": "2",
}


def _listeners(plan: NodePlan) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in SASL_USERS.items())
    return {
        "listeners": (
            f"PLAINTEXT://127.0.0.1:{plan.port},SASL_PLAINTEXT://127.0.0.1:{plan.sasl_port}"
        ),
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
    }


def _tiering(replicas: str) -> dict[str, str]:
    return {
        "remote.log.storage.system.enable": "true",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
        "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
        "rlmm.config.remote.log.metadata.topic.replication.factor": replicas,
        "remote.log.manager.task.interval.ms": "1000",
        "remote.log.manager.copier.thread.pool.size": "2",
        "remote.log.manager.expiration.thread.pool.size": "2",
        "remote.log.reader.threads": "2",
    }
