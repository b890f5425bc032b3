from __future__ import annotations

from typing import TYPE_CHECKING

import jmxquery

from demo.java import java_command
from demo.node import JMX_ROLE

if TYPE_CHECKING:
    from bench.beans import Beans
    from demo.node import Node

_TIMEOUT_SECONDS = 120


class Jmxquery:
    """The package jmxquery: a JVM for every query, all beans in one."""

    name = "JMXQuery"
    pid: int | None = None

    def __init__(self, node: Node, beans: Beans) -> None:
        self._connection = jmxquery.JMXConnection(
            f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{node.jmx_port}/jmxrmi",
            JMX_ROLE,
            node.jmx_password,
            java_command()[0],
        )
        self._queries = [
            jmxquery.JMXQuery(pattern, attribute)
            for pattern, attributes in beans.items()
            for attribute in attributes
        ]

    def prepare(self) -> None:
        """Each query has a connection of its own."""

    def scrape(self) -> None:
        answers = self._connection.query(self._queries, timeout=_TIMEOUT_SECONDS)
        if not answers:
            raise RuntimeError("JMXQuery returned nothing: that is how it tells of a timeout")

    def close(self) -> None:
        """Nothing stays between two queries."""
