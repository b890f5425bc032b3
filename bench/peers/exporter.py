"""Prometheus's jmx_exporter: as an agent in the broker, and as a server of its own over RMI."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import yaml

from bench.peers.http import HttpPeer
from demo.jars import exporter_jars
from demo.java import java_command
from demo.launcher import end
from demo.node import JMX_ROLE

if TYPE_CHECKING:
    from pathlib import Path

    from bench.beans import Beans
    from demo.launcher import Launcher
    from demo.node import Node

_VERSION = "1.0.1"
_PATH = "/metrics"
# As in its own examples for Kafka, narrowed to the attributes we read, with every match cached.
_RULES: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        r"kafka.cluster<type=Partition, name=(\w+), topic=(.+), partition=(\d+)><>Value",
        "kafka_partition_$1",
        {"topic": "$2", "partition": "$3"},
    ),
    (
        r"kafka.server<type=BrokerTopicMetrics, name=(\w+), topic=(.+)><>(Value|Count)",
        "kafka_topic_$1_$3",
        {"topic": "$2"},
    ),
    (r"kafka.server<type=ReplicaManager, name=(\w+)><>(Value|Count)", "kafka_broker_$1_$2", {}),
    (
        r"kafka.network<type=RequestMetrics, name=ErrorsPerSec, request=Produce, error=(\w+)>"
        r"<>Count",
        "kafka_produce_errors",
        {"error": "$1"},
    ),
    (
        r"kafka.server<type=(\w+), client-id=(.+)>"
        r"<>(throttle-time|byte-rate|request-time|mutation-rate|tokens)",
        "kafka_client_$1_$3",
        {"client_id": "$2"},
    ),
    (
        r"kafka.server<type=(\w+)><>(queue-size|byte-rate|exempt-request-time)",
        "kafka_broker_$1_$2",
        {},
    ),
)

EVERYTHING: dict[str, Any] = {"rules": [{"pattern": ".*"}]}
"""All beans there are: what one has who configures nothing."""


def only(beans: Beans) -> dict[str, Any]:
    """A configuration for these beans alone, as a careful user writes it."""
    return {
        "includeObjectNames": list(beans),
        "rules": [
            {
                "pattern": pattern,
                "name": name,
                "cache": True,
                **({"labels": labels} if labels else {}),
            }
            for pattern, name, labels in _RULES
        ],
    }


def agent(port: int, config: Path) -> str:
    """The JVM option that loads it into a broker."""
    jar = exporter_jars() / f"jmx_prometheus_javaagent-{_VERSION}.jar"
    return f"-javaagent:{jar}=127.0.0.1:{port}:{config}"


def write(file: Path, config: dict[str, Any]) -> None:
    """Write a configuration; a running exporter takes it up at its next scrape."""
    file.touch(mode=0o600)
    before = file.stat().st_mtime
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    later = max(time.time(), before + 1)  # it looks for a later time than that of the one it has
    os.utime(file, (later, later))


class ExporterAgent(HttpPeer):
    """The javaagent inside the broker."""

    def __init__(self, name: str, port: int) -> None:
        super().__init__(name, port, _PATH)


class ExporterServer(HttpPeer):
    """The standalone server: a process beside the broker that reads it over RMI at each request."""

    def __init__(self, name: str, node: Node, launcher: Launcher, port: int, beans: Beans) -> None:
        config = node.plan.folder / "exporter-server.yaml"
        login = {"username": JMX_ROLE, "password": node.jmx_password}
        write(config, {"hostPort": f"127.0.0.1:{node.jmx_port}", **login, **only(beans)})
        jar = exporter_jars() / f"jmx_prometheus_httpserver-{_VERSION}.jar"
        command = java_command("-Xmx256m", "-jar", str(jar), f"127.0.0.1:{port}", str(config))
        log = node.plan.folder / "exporter-server.log"
        self._process = launcher.start(command, log)
        super().__init__(name, port, _PATH, pid=self._process.pid)
        self.await_answer()

    def close(self) -> None:
        super().close()
        end(self._process, grace=5)
