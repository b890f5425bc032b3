"""A node of a cluster as its agent reads it over JMX."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.settings import Duration
from collector.sources.base.identity import Expected
from collector.sources.jmx.rmi_source import JmxSource
from collector.sources.transports import Jmx

if TYPE_CHECKING:
    from demo.node import Node


def jmx_source(node: Node, cluster: str | None = None) -> JmxSource:
    """The source; ``cluster`` is the id that must answer."""
    return JmxSource(
        Expected(node.plan.role, str(node.plan.id), cluster),
        Jmx(
            node.jmx_port or 0,
            user="monitor",
            password_file=node.password_file,
            timeout=Duration("30s"),
        ),
    )
