"""Which process on this host is the JVM that is meant: by what it runs, or by its systemd unit.

All of it is read from /proc. The JVMs that Java's own attach API lists leave out those started
with ``-XX:+PerfDisableSharedMem``, and ``systemctl`` is not in every container; a process's
control group names its unit without it. Other users' processes cannot be looked into, unless we
are root.

Being able to attach is being able to do anything: who may attach to a broker may set its
attributes, invoke its operations and load code into it, with all that the broker may read and
write. The agent must run as the broker's user, and whoever gets into the agent has got into the
broker. A JMX port with a read-only role gives none of that away; attach where no port can be
opened.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.errors import SourceRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

KAFKA: Final = "kafka.Kafka"
"""What brokers and controllers run."""

_PROC: Final = Path("/proc")
_LIBRARY: Final = "/libjvm."
_MOST_TOLD: Final = 10
_NODE_ID: Final = re.compile(r"^\s*node\.id\s*[=:]\s*(\d+)\s*$", re.MULTILINE)


class JavaProcess(NamedTuple):
    """A process that may be the one: its folder in /proc, the words of its command line."""

    folder: Path
    words: tuple[str, ...]

    @property
    def pid(self) -> int:
        """The process id."""
        return int(self.folder.name)

    def is_jvm(self) -> bool:
        """Whether it has Java's library loaded; False too where we may not look."""
        return _LIBRARY in self._text("maps")

    def is_of(self, unit: str) -> bool:
        """Whether it belongs to this systemd unit; ``.service`` may be left out."""
        name = unit if "." in unit.rpartition("@")[2] else f"{unit}.service"
        lines = self._text("cgroup").splitlines()
        parts = {part for line in lines for part in line.split(":", 2)[-1].split("/")}
        return name in parts or f"_{name}" in parts  # systemd escapes names such as cpu.service so

    def runs(self, main_class: str) -> bool:
        """Whether it runs this main class, or the jar of this name."""
        return self._main(main_class) is not None

    def node(self, main_class: str) -> str | None:
        """The ``node.id`` of a broker or controller, as its command line and properties say."""
        main = self._main(main_class)
        arguments = self.words[main + 1 :] if main is not None else ()
        if not arguments:
            return None
        # As Kafka does it: the properties file comes first, and what overrides it later.
        file = arguments[0]
        properties = self._text("root" if file.startswith("/") else "cwd", file.lstrip("/"))
        overrides = [argument for argument in arguments[1:] if "=" in argument]
        found = _NODE_ID.findall("\n".join([properties, *overrides]))
        return found[-1] if found and properties else None

    def _main(self, main_class: str) -> int | None:
        for place, word in enumerate(self.words):
            if place and main_class in (word, word.rpartition("/")[2]):
                return place
        return None

    def _text(self, *names: str) -> str:
        try:
            return self.folder.joinpath(*names).read_text("utf-8", "replace")
        except OSError:  # it has ended, or is another user's
            return ""


def find_pid(
    node: str | None,
    main_class: str = KAFKA,
    unit: str | None = None,
    proc: Path = _PROC,
) -> int:
    """The one process that fits.

    Args:
        node: Node id of the broker or controller; None: whoever runs (clients have none).
        main_class: What the JVM runs: a class, or the file name of a jar. Where a unit is given,
            it decides only between several JVMs of that unit.
        unit: Its systemd unit; ``.service`` may be left out.
        proc: Where /proc is.

    Raises:
        SourceRefusedError: There is none, or more than one.
    """
    looked_for = f"run {main_class}"
    if unit is None:
        machines = [one for one in _processes(proc) if one.runs(main_class) and one.is_jvm()]
    else:
        machines = [one for one in _processes(proc) if one.is_of(unit) and one.is_jvm()]
        looked_for = f"are JVMs of unit {unit}"
        if len(machines) > 1:
            machines = [one for one in machines if one.runs(main_class)]
            looked_for += f" and run {main_class}"
    if node is not None and (unit is None or len(machines) > 1):
        machines = [one for one in machines if one.node(main_class) == node]
        looked_for += f" as node {node}"
    if len(machines) == 1:
        return machines[0].pid
    if not machines:
        raise SourceRefusedError(
            f"attaching: 0 processes that we may look into {looked_for}: is it up,"
            " and of the same user as we are? else name its unit or pid"
        )
    pids = sorted(one.pid for one in machines)
    more = " ..." if len(pids) > _MOST_TOLD else ""
    raise SourceRefusedError(
        f"attaching: {len(pids)} processes that we may look into {looked_for} (pids"
        f" {', '.join(map(str, pids[:_MOST_TOLD]))}{more}): name its unit or pid"
    )


def check_jvm(pid: int, proc: Path = _PROC) -> None:
    """Make sure that a process is a JVM: attaching sends SIGQUIT, which ends most other programs.

    Args:
        pid: The process.
        proc: Where /proc is.

    Raises:
        SourceRefusedError: It is gone, is another program, or we may not look what it is.
    """
    folder = proc / str(pid)
    where = f"attaching to process {pid}"
    try:
        maps = (folder / "maps").read_text("utf-8", "replace")
    except PermissionError:
        raise SourceRefusedError(
            f"{where}: we may not look into that process; run the agent as the user of the JVM"
        ) from None
    except OSError:
        raise SourceRefusedError(
            f"{where}: there is no such process; has it restarted? name its unit, which stays"
        ) from None
    if _LIBRARY not in maps:
        raise SourceRefusedError(f"{where}: that process is no JVM; mend source.attach.pid")


def _processes(proc: Path) -> Iterator[JavaProcess]:
    for folder in proc.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        if int(folder.name) != os.getpid():  # with Java's own client in it we look like a JVM
            yield JavaProcess(folder, tuple(word.decode("utf-8", "replace") for word in words))
