"""A JVM on this host without a JMX port, read through Java's local attach API.

Attaching needs the same operating system user as the JVM, and it gives full control of it: the
right to set attributes, invoke operations and load code. Prefer a JMX port with a read-only
role where there is one. This module only starts the JVM's local management agent, which listens
on loopback, and reads.
"""

from typing import Any

from collector.config.schema import Attach
from collector.sources.connection.identity import Expected
from collector.sources.java.find_jvm import check_jvm, find_pid
from collector.sources.java.jvm import java
from collector.sources.jmx.rmi_source import RmiSource


class AttachSource(RmiSource):
    """A broker, controller or client JVM on this host.

    Without a pid its process is looked for at every connect, since that changes with a restart.

    Args:
        expected: Who should answer.
        attach: Which process it is.
    """

    def __init__(self, expected: Expected, attach: Attach) -> None:
        super().__init__("attaching", expected, attach.timeout.seconds)
        self._attach = attach

    def _connect(self) -> Any:
        pid = self._pid()
        self._where = f"attaching to process {pid}"
        machine = java("com.sun.tools.attach.VirtualMachine").attach(str(pid))
        try:
            address = machine.startLocalManagementAgent()
        finally:
            machine.detach()
        return _server(str(address)).newClient(None)

    def _pid(self) -> int:
        if self._attach.pid is not None:
            check_jvm(self._attach.pid)
            return self._attach.pid
        node = None if self._expected.role == "client" else self._expected.node
        return find_pid(node, self._attach.main_class, self._attach.unit)


def _server(address: str) -> Any:
    """The RMI stub that the address of a local management agent holds, encoded."""
    url = java("javax.management.remote.JMXServiceURL")(address)
    encoded = str(url.getURLPath()).removeprefix("/stub/")
    stub = java("java.util.Base64").getDecoder().decode(encoded)
    stream = java("java.io.ByteArrayInputStream")(stub)
    return java("java.io.ObjectInputStream")(stream).readObject()
