"""A JVM on this host without a JMX port, read through Java's local attach API.

Attaching needs the same operating system user as the JVM, and it gives full control of it: whoever
may attach may set attributes, invoke operations and load code. Prefer a JMX port with a read-only
role where there is one. This module only starts the JVM's local management agent, which listens
on loopback, and reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.sources import jvm
from collector.sources.java_processes import KAFKA, check_jvm, find_pid
from collector.sources.session import MBeanSource

if TYPE_CHECKING:
    from collector.sources.expected import Expected


class AttachSource(MBeanSource):
    """A broker, controller or client JVM on this host.

    Args:
        expected: Who should answer.
        pid: The process to attach to; None: the one that fits the rest, looked for at every
            connect, since its id changes with a restart.
        unit: Its systemd unit; decides where it is given.
        main_class: What the JVM runs: a class, or the file name of a jar.
        timeout_seconds: How long connecting, and how long one read, may take.
    """

    def __init__(
        self,
        expected: Expected,
        pid: int | None = None,
        *,
        unit: str | None = None,
        main_class: str = KAFKA,
        timeout_seconds: float = 5,
    ) -> None:
        super().__init__("attaching", expected, timeout_seconds)
        self._pid = pid
        self._unit = unit
        self._main_class = main_class

    def _connect(self) -> Any:
        pid = self._pid or self._find()
        if self._pid:
            check_jvm(pid)
        self._where = f"attaching to process {pid}"
        machine = jvm.java("com.sun.tools.attach.VirtualMachine").attach(str(pid))
        try:
            address = machine.startLocalManagementAgent()
        finally:
            machine.detach()
        return _server(str(address)).newClient(None)

    def _find(self) -> int:
        node = None if self._expected.role == "client" else self._expected.node
        return find_pid(node, self._main_class, self._unit)


def _server(address: str) -> Any:
    """The RMI stub that the address of a local management agent holds, encoded."""
    url = jvm.java("javax.management.remote.JMXServiceURL")(address)
    encoded = str(url.getURLPath()).removeprefix("/stub/")
    stub = jvm.java("java.util.Base64").getDecoder().decode(encoded)
    return jvm.java("java.io.ObjectInputStream")(
        jvm.java("java.io.ByteArrayInputStream")(stub)
    ).readObject()
