"""A broker whose authorizer hides the metadata topic of remote storage from the agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from demo.jars import kafka_libs
from demo.node import JMX_ROLE
from demo.properties import SASL_USERS
from tests.combined_node import combined_node
from tests.integration.test_agent_cli import call
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from demo.node import Node

pytestmark = pytest.mark.kafka

TOPIC = "__remote_log_metadata"
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


def rule(kind: ResourceType, name: str, operation: AclOperation, *, deny: bool) -> AclBinding:
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    pattern = ResourcePatternType.LITERAL
    return AclBinding(kind, name, pattern, "User:alice", "*", operation, permission)


def prepare(node: Node) -> None:
    """Create a tiered topic and the rights of alice."""
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{node.plan.port}", "log_level": 0})
    rules = [rule(ResourceType.TOPIC, TOPIC, AclOperation.DESCRIBE, deny=True)]
    broker, topic, group = ResourceType.BROKER, ResourceType.TOPIC, ResourceType.GROUP
    for kind, name in ((broker, "kafka-cluster"), (topic, "*"), (group, "*")):
        rules.append(rule(kind, name, AclOperation.DESCRIBE, deny=False))
        if kind != group:
            rules.append(rule(kind, name, AclOperation.DESCRIBE_CONFIGS, deny=False))
    tiered = NewTopic("orders", 1, 1, config={"remote.storage.enable": "true"})
    for future in [*admin.create_acls(rules).values(), *admin.create_topics([tiered]).values()]:
        future.result(120)
    wait_for(lambda: TOPIC in admin.list_topics(timeout=30).topics, 120)


def settings(node: Node, folder: Path) -> dict[str, Any]:
    login = folder / "client.properties"
    login.touch(mode=0o600)
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="alice" password="{SASL_USERS["alice"]}";\n'
    )
    jmx = {"port": node.jmx_port, "user": JMX_ROLE, "password_file": str(node.password_file)}
    return {
        "source": {"node": 7, "jmx": {**jmx, "timeout": "30s"}},
        "admin": {
            "bootstrap": f"127.0.0.1:{node.plan.sasl_port}",
            "libs": str(kafka_libs()),
            "properties_file": str(login),
            "timeout": "30s",
        },
        "remote_log": {"log_dirs": [str(node.plan.log_dir)]},
        "lake": {"path": str(folder / "lake")},
        "spool": {"path": str(folder / "spool.db")},
        "health": {"port": 0},
        "families": {"leaders": {"interval": "60s"}},
    }


def test_hidden_topic_is_one_line_and_the_beans_remain(tmp_path: Path) -> None:
    with combined_node(tmp_path, AUTHORIZER) as node:
        prepare(node)
        ran = call(settings(node, tmp_path), tmp_path, "check", "--json")
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    (failed,) = (row for row in rows if "check" in row and row.get("found") and not row["ok"])
    assert failed["check"] == "family remote_log"
    assert failed["found"].endswith(
        f"the agent is not authorized; grant its principal Read and Describe on topic {TOPIC}"
    )
    beans = {row["metric"]: row["beans"] for row in rows if row["check"] == "metric"}
    assert beans["kafka.topic.remote_copy_lag.bytes"] > 0
    assert beans["kafka.broker.led_partitions"] > 0
    assert not [name for name in beans if name.startswith("kafka.partition.upload_lag")]
