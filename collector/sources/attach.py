"""A JVM on this host without a JMX port, read through Java's local attach API.

Attaching needs the same operating system user as the JVM, and it gives full control of it: whoever
may attach may set attributes, invoke operations and load code. Prefer a JMX port with a read-only
role where there is one. This module only starts the JVM's local management agent, which listens
on loopback, and reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.errors import SourceRefusedError
from collector.sources import jvm
from collector.sources.cap import DEFAULT_CAP
from collector.sources.session import Expected, MBeanSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class AttachSource(MBeanSource):
    """A broker, controller or client JVM on this host.

    Args:
        expected: Who should answer.
        find_pid: Says which process to attach to, at every connect: its id changes with a restart.
        timeout_seconds: How long connecting, and how long one read, may take.
        cap: Most series per family.
    """

    def __init__(
        self,
        expected: Expected,
        find_pid: Callable[[], int],
        *,
        timeout_seconds: float = 5,
        cap: int = DEFAULT_CAP,
    ) -> None:
        super().__init__("attaching", expected, timeout_seconds, cap)
        self._find_pid = find_pid

    def _connect(self) -> Any:
        pid = self._find_pid()
        self._where = f"attaching to process {pid}"
        machine = jvm.java("com.sun.tools.attach.VirtualMachine").attach(str(pid))
        try:
            address = machine.startLocalManagementAgent()
        finally:
            machine.detach()
        url = jvm.java("javax.management.remote.JMXServiceURL")(address)
        return jvm.java("javax.management.remote.JMXConnectorFactory").connect(url)


def kafka_pid(config: Path | str) -> int:
    """The process that runs ``kafka.Kafka`` with this properties file.

    Only JVMs of the same user can be seen.

    Raises:
        SourceRefusedError: There is none, or more than one.
    """
    pids = []
    for machine in jvm.java("com.sun.tools.attach.VirtualMachine").list():
        main, _, arguments = str(machine.displayName()).partition(" ")
        if main == "kafka.Kafka" and str(config) in arguments.split():
            pids.append(int(str(machine.id())))
    if len(pids) != 1:
        raise SourceRefusedError(
            f"attaching: {len(pids)} processes of this user run kafka.Kafka {config}: is it up,"
            " and is the path as on its command line?"
        )
    return pids[0]
