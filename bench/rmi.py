"""A bare RMI connection to a broker's MBeans, with nothing of ours in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jpype

from collector.sources.jmx.rmi_calls import LOOKUP, NEW_CLIENT, QUERY_NAMES, called
from demo.node import JMX_ROLE

if TYPE_CHECKING:
    from bench.peers import Target

_SYSTEM = "java.lang:type=OperatingSystem"


class BareRmi:
    """One attribute a call, as JMX has it; the process's JVM must run."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._connection = self._connect()
        self._name = jpype.JClass("javax.management.ObjectName")

    def names(self, pattern: str) -> list[Any]:
        """The beans that match."""
        return list(called(self._connection, QUERY_NAMES, self._name(pattern), None, None))

    def attribute(self, name: Any, attribute: str) -> float:
        """One value."""
        return float(self._connection.getAttribute(name, attribute, None))

    def cpu_seconds(self) -> float:
        """What the broker has used of the processors since it was started."""
        try:
            self._connection.getConnectionId()
        except jpype.JClass("java.rmi.NoSuchObjectException"):  # idle for two minutes: closed
            self._connection = self._connect()
        return self.attribute(self._name(_SYSTEM), "ProcessCpuTime") / 1e9

    def close(self) -> None:
        """Tell the broker that nobody will come again."""
        self._connection.close()

    def _connect(self) -> Any:
        registry = jpype.JClass("java.rmi.registry.LocateRegistry")
        text = jpype.JClass("java.lang.String")
        login = jpype.JArray(text)([JMX_ROLE, self._target.jmx_password])
        server = called(
            registry.getRegistry("127.0.0.1", self._target.jmx_port), LOOKUP, text("jmxrmi")
        )
        return called(server, NEW_CLIENT, login)
