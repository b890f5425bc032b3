"""A JVM on this host without a JMX port, read through Java's local attach API.

Which process it is, is read from /proc: by what it runs, or by its systemd unit. The JVMs that
Java's own attach API lists leave out those started with ``-XX:+PerfDisableSharedMem``, and
``systemctl`` is not in every container; a process's control group names its unit without it. Other
users' processes cannot be looked into, unless we are root.

The right to attach gives full power over a broker: its attributes can be set, its operations
invoked, and code loaded into it, with all that the broker may read and write. The agent must run as
the broker's user, and an attacker of the agent controls the broker. A JMX port with a read-only
role avoids all that; attach where no port can be opened. This module only starts the JVM's local
management agent, which listens on loopback, and reads.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from collector.errors import SourceRefusedError
from collector.sources.base.identity import Expected
from collector.sources.java.jvm import java
from collector.sources.jmx.remote_call import NEW_CLIENT, called, stub_of
from collector.sources.jmx.rmi_source import RmiSource
from collector.sources.jmx import Attach

_PROC: Final = Path("/proc")
_MOST_LISTED: Final = 10
_NODE_ID: Final = re.compile(r"^\s*node\.id\s*[=:]\s*(\d+)\s*$", re.MULTILINE)


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
        return called(_server(str(address)), NEW_CLIENT, None)

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
    return stub_of(java("java.util.Base64").getDecoder().decode(encoded))


class _Jvm(NamedTuple):
    """A process with Java in it: its folder in /proc, the words of its command line."""

    folder: Path
    words: tuple[str, ...]

    def is_of(self, unit: str) -> bool:
        """Whether it belongs to this systemd unit; ``.service`` may be left out."""
        name = unit if "." in unit.rpartition("@")[2] else f"{unit}.service"
        lines = _text(self.folder / "cgroup").splitlines()
        parts = {part for line in lines for part in line.split(":", 2)[-1].split("/")}
        return name in parts or f"_{name}" in parts  # systemd escapes names such as cpu.service so

    def arguments(self, main_class: str) -> tuple[str, ...] | None:
        """The arguments after this main class, or the jar of this name; None: it runs another."""
        for place, word in enumerate(self.words):
            if place and main_class in (word, word.rpartition("/")[2]):
                return self.words[place + 1 :]
        return None

    def node(self, main_class: str) -> str | None:
        """The ``node.id`` of a broker or controller, as its command line and properties say."""
        # As Kafka does it: the properties file comes first, and what overrides it later.
        file, *overrides = self.arguments(main_class) or ("",)
        seen_from = "root" if file.startswith("/") else "cwd"
        properties = _text(self.folder / seen_from / file.lstrip("/"))
        found = _NODE_ID.findall("\n".join([properties, *overrides]))
        return found[-1] if found and properties else None


def find_pid(
    node: str | None, main_class: str = "kafka.Kafka", unit: str | None = None, proc: Path = _PROC
) -> int:
    """The one process that fits.

    Args:
        node: Node id of the broker or controller; None: any (clients have none).
        main_class: What the JVM runs: a class, or the file name of a jar. Where a unit is given,
            it decides only between several JVMs of that unit.
        unit: Its systemd unit; ``.service`` may be left out.
        proc: Where /proc is.

    Raises:
        SourceRefusedError: There is none, or more than one.
    """
    found = [one for one in _jvms(proc) if unit is None or one.is_of(unit)]
    looked_for = "are JVMs" if unit is None else f"are JVMs of unit {unit}"
    if unit is None or len(found) > 1:
        found = [one for one in found if one.arguments(main_class) is not None]
        looked_for += f" and run {main_class}"
        if node is not None:
            found = [one for one in found if one.node(main_class) == node]
            looked_for += f" as node {node}"
    pids = sorted(int(one.folder.name) for one in found)
    if len(pids) == 1:
        return pids[0]
    problem = f"attaching: {len(pids)} processes that we may look into {looked_for}"
    if not pids:
        raise SourceRefusedError(
            f"{problem}: is it up, and of the same user as we are? else name its unit or pid"
        )
    more = " ..." if len(pids) > _MOST_LISTED else ""
    raise SourceRefusedError(
        f"{problem} (pids {', '.join(map(str, pids[:_MOST_LISTED]))}{more}): name its unit or pid"
    )


def check_jvm(pid: int, proc: Path = _PROC) -> None:
    """Make sure that a process is a JVM: attaching sends SIGQUIT, which ends most other programs.

    Args:
        pid: The process.
        proc: Where /proc is.

    Raises:
        SourceRefusedError: It is gone, is another program, or we may not look what it is.
    """
    if not _is_jvm(proc / str(pid)):
        raise SourceRefusedError(
            f"attaching to process {pid}: that is no JVM that we may look into: has it restarted,"
            " or is it another user's? name its unit, which stays"
        )


def _jvms(proc: Path) -> Iterator[_Jvm]:
    for folder in proc.glob("[0-9]*"):
        # With Java's own client in it we look like a JVM ourselves.
        if int(folder.name) != os.getpid() and _is_jvm(folder):
            yield _Jvm(folder, tuple(_text(folder / "cmdline").rstrip("\0").split("\0")))


def _is_jvm(folder: Path) -> bool:
    return "/libjvm." in _text(folder / "maps")


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except OSError:  # it has ended, or is another user's
        return ""
