from __future__ import annotations

import base64
import os
import re
import secrets
import shutil
import signal
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from demo.jars import jolokia_jar
from demo.java import from_archive, java_command
from demo.launcher import Launcher, end, kill
from demo.properties import NodePlan, as_text

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

JMX_ROLE = "monitor"
_DIRECTORY_ID = re.compile("(?<=directory.id=).+")
_LOG4J = Path(__file__).parent / "log4j2.properties"
_HEAPS = {"controller": "192m", "broker": "320m"}


def random_id() -> str:
    """An id as Kafka makes them: 128 random bits, in base64 for URLs."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def class_archive(libs: Path) -> Path:
    """Where an archive of the classes that a node loads may lie: with it, one starts sooner."""
    return libs / "classes.jsa"


class Node:
    """One Kafka process, controller or broker, that can be killed, paused and started again."""

    def __init__(self, plan: NodePlan, libs: Path, launcher: Launcher) -> None:
        self.plan = plan
        self._libs = libs
        self._launcher = launcher
        self._process: subprocess.Popen[bytes] | None = None
        self.password_file = plan.folder / "jmx.password"
        self.jolokia_file = plan.folder / "jolokia.properties"
        self.log = plan.folder / "node.log"

    @property
    def jmx_port(self) -> int | None:
        """The port of JMX over RMI on loopback, if the node has one."""
        return self.plan.jmx_port

    @property
    def jmx_password(self) -> str:
        """The password of the role ``monitor``, which may read only."""
        return self.password_file.read_text().split()[1]

    @property
    def pid(self) -> int | None:
        """The process's id; none before the first start."""
        return self._process.pid if self._process else None

    @property
    def alive(self) -> bool:
        """Whether the process runs (a paused one does)."""
        return self._process is not None and self._process.poll() is None

    def prepare(self, properties: Mapping[str, str]) -> None:
        """Write the node's files but its formatted log folder."""
        self.plan.folder.mkdir(parents=True)
        (self.plan.folder / "server.properties").write_text(as_text(properties))
        self._write_jmx_files()

    def format(self, cluster_id: str) -> subprocess.Popen[bytes]:
        """Start Kafka's tool that formats the log folder; wait for what is returned."""
        config = str(self.plan.folder / "server.properties")
        storage = ("kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", "-c", config)
        return self._launcher.start(self._java("64m", [], *storage), self.log)

    def format_like(self, other: Node) -> None:
        """Copy another node's log folder, as it was formatted, and give it our id and its own.

        In a folder that was just formatted nothing else is the node's; a JVM takes a second.
        """
        shutil.copytree(other.plan.log_dir, self.plan.log_dir)
        meta = self.plan.log_dir / "meta.properties"
        text = meta.read_text().replace(f"node.id={other.plan.id}\n", f"node.id={self.plan.id}\n")
        meta.write_text(_DIRECTORY_ID.sub(random_id(), text))

    def start(self) -> None:
        """Start the process; it is not ready yet when this returns."""
        config = str(self.plan.folder / "server.properties")
        heap = _HEAPS[self.plan.role]
        # The plan's own come last: of two that say otherwise, Java takes the later.
        options = [*self._jmx_options(), *self._jolokia_options(), *self.plan.jvm_options]
        command = self._java(heap, options, "kafka.Kafka", config)
        self._process = self._launcher.start(command, self.log)

    def kill(self) -> None:
        """SIGKILL: the broker has no time to say goodbye. Returns when it is gone."""
        if self._process:
            kill(self._process)

    def stop(self, grace: float = 20) -> None:
        """SIGTERM, then SIGKILL after ``grace`` seconds. Returns when it is gone."""
        if self._process:
            end(self._process, grace)

    def restart(self) -> None:
        """Start it again with the same ports and data, killing it first if it still runs."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: the process keeps its connections and answers nothing; on return it stands."""
        self._signal(signal.SIGSTOP)
        if self._process:
            os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def describe(self) -> dict[str, object]:
        """What an agent's configuration needs to know of it, ready for JSON."""
        return {
            "id": self.plan.id,
            "name": self.plan.name,
            "role": self.plan.role,
            "rack": self.plan.rack,
            "port": self.plan.port,
            "jmx_port": self.jmx_port,
            "jmx_role": JMX_ROLE,
            "jmx_password_file": str(self.password_file),
            "pid": self.pid,
            "log_dir": str(self.plan.log_dir),
            "log": str(self.log),
        }

    def _signal(self, number: signal.Signals) -> None:
        if self._process:
            self._process.send_signal(number)

    def _java(self, heap: str, options: list[str], *main: str) -> list[str]:
        return java_command(
            *from_archive(class_archive(self._libs)),
            *(f"-Xmx{heap}", "-Xms32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-XX:+ExitOnOutOfMemoryError", f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"),
            *options,
            *("-cp", f"{self._libs}/*", *main),
        )

    def _jmx_options(self) -> list[str]:
        if self.jmx_port is None:
            return []
        jmx = "-Dcom.sun.management.jmxremote"
        return [
            jmx,
            f"{jmx}.port={self.jmx_port}",
            f"{jmx}.rmi.port={self.jmx_port}",
            f"{jmx}.host=127.0.0.1",
            "-Djava.rmi.server.hostname=127.0.0.1",
            f"{jmx}.authenticate=true",
            f"{jmx}.password.file={self.password_file}",
            f"{jmx}.password.toHashes=false",  # else the JVM overwrites what agents read
            f"{jmx}.access.file={self.password_file.with_suffix('.access')}",
            f"{jmx}.ssl=false",
        ]

    def _jolokia_options(self) -> list[str]:
        if self.plan.jolokia_port is None:
            return []
        return [f"-javaagent:{jolokia_jar()}=config={self.jolokia_file}"]

    def _write_jmx_files(self) -> None:
        # The JVM refuses a password file that others may read.
        self.password_file.touch(mode=0o600)
        self.password_file.write_text(f"{JMX_ROLE} {secrets.token_hex(16)}\n")
        self.password_file.with_suffix(".access").write_text(f"{JMX_ROLE} readonly\n")
        if self.plan.jolokia_port is not None:
            self.jolokia_file.touch(mode=0o600)
            self.jolokia_file.write_text(as_text(self._jolokia_properties()))

    def _jolokia_properties(self) -> dict[str, str]:
        return {
            "host": "127.0.0.1",
            "port": str(self.plan.jolokia_port),
            "user": JMX_ROLE,
            "password": self.jmx_password,
            "discoveryEnabled": "false",
        }
