"""A KRaft node that is broker and controller: a whole cluster in one process."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from demo.jars import kafka_libs
from demo.launcher import Launcher
from demo.node import Node
from demo.ports import free_ports
from demo.properties import NodePlan, broker_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAA"


@contextmanager
def combined_node(folder: Path, more: Mapping[str, str]) -> Iterator[Node]:
    """Start node 7 of ``CLUSTER``, with further properties. It need not be ready yet."""
    port, sasl, jmx, quorum = free_ports(4)
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl}"
    extra = {
        "process.roles": "broker,controller",
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{quorum}",
        **more,
    }
    plan = NodePlan(7, "broker", folder / "node", port, sasl, jmx, "a", extra)
    launcher = Launcher()
    node = Node(plan, kafka_libs(), launcher)
    properties = broker_properties(plan, replace(plan, port=quorum), 1, folder / "remote")
    try:
        node.prepare(properties)
        assert node.format(CLUSTER).wait(180) == 0
        node.start()
        yield node
    finally:
        node.kill()
        launcher.close()
