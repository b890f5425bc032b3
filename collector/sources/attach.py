"""A JVM on this host without a JMX port, read through Java's local attach API.

Attaching needs the same operating system user as the JVM, and it gives full control of it: whoever
may attach may set attributes, invoke operations and load code. Prefer a JMX port with a read-only
role where there is one. This module only starts the JVM's local management agent, which listens
on loopback, and reads.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from collector.errors import SourceRefusedError
from collector.sources import jvm
from collector.sources.cap import DEFAULT_CAP
from collector.sources.session import Expected, MBeanSource

_MAIN_CLASS: Final = "kafka.Kafka"
_NODE_ID: Final = re.compile(r"^\s*node\.id\s*[=:]\s*(\d+)\s*$", re.MULTILINE)


class AttachSource(MBeanSource):
    """A broker, controller or client JVM on this host.

    Args:
        expected: Who should answer.
        pid: The process to attach to; None: the one that runs the node that is expected, looked
            for at every connect, since its id changes with a restart.
        timeout_seconds: How long connecting, and how long one read, may take.
        cap: Most series per family.
    """

    def __init__(
        self,
        expected: Expected,
        pid: int | None = None,
        *,
        timeout_seconds: float = 5,
        cap: int = DEFAULT_CAP,
    ) -> None:
        super().__init__("attaching", expected, timeout_seconds, cap)
        self._pid = pid

    def _connect(self) -> Any:
        pid = self._pid or kafka_pid(self._expected.node)
        self._where = f"attaching to process {pid}"
        machine = jvm.java("com.sun.tools.attach.VirtualMachine").attach(str(pid))
        try:
            address = machine.startLocalManagementAgent()
        finally:
            machine.detach()
        url = jvm.java("javax.management.remote.JMXServiceURL")(address)
        return jvm.java("javax.management.remote.JMXConnectorFactory").connect(url)


def kafka_pid(node: str | None) -> int:
    """The process that runs ``kafka.Kafka`` as this node, or as any if the host has only one.

    Only JVMs of the same user can be seen.

    Raises:
        SourceRefusedError: There is none, or more than one.
    """
    pids = []
    for machine in jvm.java("com.sun.tools.attach.VirtualMachine").list():
        main, *arguments = str(machine.displayName()).split() or [""]  # some do not say
        pid = int(str(machine.id()))
        if main == _MAIN_CLASS and (node is None or node == _node_id(pid, arguments)):
            pids.append(pid)
    if len(pids) != 1:
        raise SourceRefusedError(
            f"attaching: {len(pids)} processes of this user run {_MAIN_CLASS} as node"
            f" {node or 'any'}: is it up, and of the same user as we are? else name its pid"
        )
    return pids[0]


def _node_id(pid: int, arguments: list[str]) -> str | None:
    # As Kafka does it: the properties file comes first, and what overrides it later.
    texts = [argument for argument in arguments[1:] if "=" in argument]
    try:
        texts = [Path(f"/proc/{pid}/cwd", arguments[0]).read_text("utf-8"), *texts]
    except (OSError, IndexError):
        return None
    found = _NODE_ID.findall("\n".join(texts))
    return found[-1] if found else None
