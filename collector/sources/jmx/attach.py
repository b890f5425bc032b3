"""A JVM on this host without a JMX port, read through Java's local attach API.

The agent finds the process in /proc, by its main class or its systemd unit. Java's attach API does
not list JVMs with ``-XX:+PerfDisableSharedMem``, and not every container has ``systemctl``. A
process's control group names its unit. Only root can inspect processes of other users.

The right to attach gives full control of a broker: a client can set attributes, invoke operations
and load code, with all permissions of the broker. The agent must run as the broker's user, so an
attacker of the agent controls the broker. Use a JMX port with a read-only role if you can open one.
This module only starts the JVM's local management agent, which listens on loopback, and reads.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from collector.errors import SourceRefusedError
from collector.sources.base.identity import Expected
from collector.sources.java.jvm import java
from collector.sources.jmx.rmi_calls import NEW_CLIENT, called, stub_of
from collector.sources.jmx.rmi_source import RmiSource
from collector.sources.transports import Attach

_PROC: Final = Path("/proc")
_MOST_LISTED: Final = 10
_NODE_ID: Final = re.compile(r"^\s*node\.id\s*[=:]\s*(\d+)\s*$", re.MULTILINE)


class AttachSource(RmiSource):
    """A broker, controller or client JVM on this host.

    Without a configured pid, every connect finds the process, whose pid changes with a restart.

    Args:
        expected: Expected identity.
        attach: Process.
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
        return called(_server(str(address)), NEW_CLIENT, None)

    def _pid(self) -> int:
        if self._attach.pid is not None:
            check_jvm(self._attach.pid)
            return self._attach.pid
        node = None if self._expected.role == "client" else self._expected.node
        return find_pid(node, self._attach.main_class, self._attach.unit)


def _server(address: str) -> Any:
    """Return the RMI stub that is encoded in the address of a local management agent."""
    url = java("javax.management.remote.JMXServiceURL")(address)
    encoded = str(url.getURLPath()).removeprefix("/stub/")
    return stub_of(java("java.util.Base64").getDecoder().decode(encoded))


class _Jvm(NamedTuple):
    """A Java process: its folder in /proc, and the words of its command line."""

    folder: Path
    words: tuple[str, ...]

    def is_of(self, unit: str) -> bool:
        """Return True if the process belongs to a systemd unit; ``.service`` is optional."""
        name = unit if "." in unit.rpartition("@")[2] else f"{unit}.service"
        lines = _text(self.folder / "cgroup").splitlines()
        parts = {part for line in lines for part in line.split(":", 2)[-1].split("/")}
        return name in parts or f"_{name}" in parts  # systemd escapes names such as cpu.service

    def arguments(self, main_class: str) -> tuple[str, ...] | None:
        """Return the arguments after this main class or jar. None: another program."""
        for place, word in enumerate(self.words):
            if place and main_class in (word, word.rpartition("/")[2]):
                return self.words[place + 1 :]
        return None

    def node(self, main_class: str) -> str | None:
        """Return the ``node.id`` of a broker or controller, from properties and command line."""
        # As in Kafka, the command line overrides the properties file.
        file, *overrides = self.arguments(main_class) or ("",)
        seen_from = "root" if file.startswith("/") else "cwd"
        properties = _text(self.folder / seen_from / file.lstrip("/"))
        found = _NODE_ID.findall("\n".join([properties, *overrides]))
        return found[-1] if found and properties else None


def find_pid(
    node: str | None, main_class: str = "kafka.Kafka", unit: str | None = None, proc: Path = _PROC
) -> int:
    """Return the pid of the only matching process.

    Args:
        node: Node ID of the broker or controller. None: any, or a client.
        main_class: Main class, or the file name of a jar. With a unit, it only decides between
            several JVMs of that unit.
        unit: systemd unit; ``.service`` is optional.
        proc: Path of /proc.

    Raises:
        SourceRefusedError: No process matches, or several do.
    """
    found = [one for one in _jvms(proc) if unit is None or one.is_of(unit)]
    wanted = "are JVMs" if unit is None else f"are JVMs of unit {unit}"
    if unit is None or len(found) > 1:
        found = [one for one in found if one.arguments(main_class) is not None]
        wanted += f" and run {main_class}"
        if node is not None:
            found = [one for one in found if one.node(main_class) == node]
            wanted += f" as node {node}"
    pids = sorted(int(one.folder.name) for one in found)
    if len(pids) == 1:
        return pids[0]
    problem = f"attaching: {len(pids)} processes that the agent can inspect {wanted}"
    if not pids:
        raise SourceRefusedError(
            f"{problem}; check that the JVM is running as the agent's user, or set unit or pid"
        )
    more = " ..." if len(pids) > _MOST_LISTED else ""
    listed = f"{', '.join(map(str, pids[:_MOST_LISTED]))}{more}"
    raise SourceRefusedError(f"{problem} (pids {listed}); set unit or pid")


def check_jvm(pid: int, proc: Path = _PROC) -> None:
    """Check that a process is a JVM. Attaching sends SIGQUIT, which ends most other programs.

    Args:
        pid: Process ID.
        proc: Path of /proc.

    Raises:
        SourceRefusedError: The process does not exist, is another program, or belongs to another
            user.
    """
    if not _is_jvm(proc / str(pid)):
        raise SourceRefusedError(
            f"attaching to process {pid}: not a JVM of the agent's user; if it has restarted, set"
            " unit instead of pid"
        )


def _jvms(proc: Path) -> Iterator[_Jvm]:
    for folder in proc.glob("[0-9]*"):
        # The agent itself has a JVM in its process.
        if int(folder.name) != os.getpid() and _is_jvm(folder):
            yield _Jvm(folder, tuple(_text(folder / "cmdline").rstrip("\0").split("\0")))


def _is_jvm(folder: Path) -> bool:
    return "/libjvm." in _text(folder / "maps")


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:  # the process has ended, or belongs to another user
        return ""
