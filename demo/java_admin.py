"""Quotas, broker defaults and reassignments, which librdkafka cannot change: Kafka's Java client.

Run as a process of its own (``python -m demo.java_admin``, the wish as JSON on standard input): a
process can hold one JVM only, and the caller's may be taken.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import jpype

from demo.errors import DemoError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.cluster import Cluster

_SECONDS = 180


@dataclass(frozen=True)
class Quota:
    """One limit of one user or client id: ``producer_byte_rate`` and so on, as Kafka names it."""

    key: str
    limit: float
    user: str | None = None
    client_id: str | None = None


def set_quotas(cluster: Cluster, quotas: Sequence[Quota]) -> None:
    """Set quotas; returns when the controller has taken them.

    Raises:
        DemoError: Kafka refused them.
    """
    _call(cluster, {"quotas": [asdict(quota) for quota in quotas]})


def set_broker_defaults(cluster: Cluster, settings: Mapping[str, str | None]) -> None:
    """Change settings of all brokers while they run; None takes a setting back.

    Raises:
        DemoError: Kafka refused them.
    """
    _call(cluster, {"broker_defaults": dict(settings)})


def reassign(cluster: Cluster, topic: str, replicas: Sequence[Sequence[int]]) -> None:
    """Give each partition of a topic other replicas; returns when the controller has begun.

    Raises:
        DemoError: Kafka refused it.
    """
    _call(cluster, {"reassignment": {"topic": topic, "replicas": replicas}})


def _call(cluster: Cluster, wish: dict[str, Any]) -> None:
    request = {"libs": str(cluster.libs), "bootstrap": cluster.bootstrap, **wish}
    ran = subprocess.run(
        [sys.executable, "-m", "demo.java_admin"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        timeout=_SECONDS,
    )
    if ran.returncode != 0:
        last = (ran.stderr.strip() or "no message").splitlines()[-1]
        raise DemoError(f"Kafka's Admin client could not do {', '.join(wish)}: {last}")


def main() -> None:
    """Do what standard input says."""
    request = json.load(sys.stdin)
    jpype.startJVM(
        "-Xmx64m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        classpath=[f"{request['libs']}/*"],
        convertStrings=True,
    )
    admin_class = jpype.JClass("org.apache.kafka.clients.admin.Admin")
    config = jpype.JClass("java.util.HashMap")()
    config.put("bootstrap.servers", request["bootstrap"])
    admin = admin_class.create(config)
    try:
        if quotas := request.get("quotas"):
            admin.alterClientQuotas(_quota_alterations(quotas)).all().get()
        if settings := request.get("broker_defaults"):
            admin.incrementalAlterConfigs(_broker_alterations(settings)).all().get()
        if moves := request.get("reassignment"):
            admin.alterPartitionReassignments(_reassignments(**moves)).all().get()
    finally:
        admin.close()


def _quota_alterations(quotas: list[dict[str, Any]]) -> Any:
    alteration = jpype.JClass("org.apache.kafka.common.quota.ClientQuotaAlteration")
    operation = jpype.JClass("org.apache.kafka.common.quota.ClientQuotaAlteration$Op")
    entity = jpype.JClass("org.apache.kafka.common.quota.ClientQuotaEntity")
    wanted = jpype.JClass("java.util.ArrayList")()
    for quota in quotas:
        names = jpype.JClass("java.util.HashMap")()
        for kind, name in (("user", quota["user"]), ("client-id", quota["client_id"])):
            if name is not None:
                names.put(kind, name)
        limit = operation(quota["key"], jpype.JClass("java.lang.Double")(quota["limit"]))
        wanted.add(alteration(entity(names), jpype.java.util.List.of(limit)))
    return wanted


def _broker_alterations(settings: dict[str, str | None]) -> Any:
    entry = jpype.JClass("org.apache.kafka.clients.admin.ConfigEntry")
    operation = jpype.JClass("org.apache.kafka.clients.admin.AlterConfigOp")
    op_type = jpype.JClass("org.apache.kafka.clients.admin.AlterConfigOp$OpType")
    resource = jpype.JClass("org.apache.kafka.common.config.ConfigResource")
    broker = jpype.JClass("org.apache.kafka.common.config.ConfigResource$Type").BROKER
    operations = jpype.JClass("java.util.ArrayList")()
    for key, value in settings.items():
        kind = op_type.DELETE if value is None else op_type.SET
        operations.add(operation(entry(key, value), kind))
    alterations = jpype.JClass("java.util.HashMap")()
    alterations.put(resource(broker, ""), operations)
    return alterations


def _reassignments(topic: str, replicas: list[list[int]]) -> Any:
    partition = jpype.JClass("org.apache.kafka.common.TopicPartition")
    target = jpype.JClass("org.apache.kafka.clients.admin.NewPartitionReassignment")
    integer = jpype.JClass("java.lang.Integer")
    wanted = jpype.JClass("java.util.HashMap")()
    for number, brokers in enumerate(replicas):
        listed = jpype.java.util.ArrayList([integer(broker) for broker in brokers])
        wanted.put(partition(topic, number), jpype.java.util.Optional.of(target(listed)))
    return wanted


if __name__ == "__main__":
    main()
