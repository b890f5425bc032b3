"""A real agent process for tests: started, listened to, asked and stopped."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Self

import psutil
import yaml
from prometheus_client.parser import text_string_to_metric_families

from demo.agents import script
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from prometheus_client.samples import Sample

_END = b"the test has ended"


class RunningAgent:
    """``jmxlake-agent run --json`` with its configuration, log, and a socket like systemd's.

    Args:
        settings: The configuration.
        folder: Where configuration, log and socket go.
        text: Whether the log is text instead of JSON.
        environ: Further variables of its environment.
    """

    def __init__(
        self, settings: dict[str, Any], folder: Path, *, text: bool = False, **environ: str
    ) -> None:
        self._format = () if text else ("--json",)
        folder.mkdir(parents=True, exist_ok=True)
        self.settings, self.config, self.log = settings, folder / "agent.yaml", folder / "agent.log"
        self.configure(settings)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "notify"))
        self._told: list[str] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._environ = {**os.environ, "NOTIFY_SOCKET": str(folder / "notify"), **environ}

    def __enter__(self) -> Self:
        command = [script("jmxlake-agent"), "run", "--config", str(self.config), *self._format]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self._environ)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ours:
            ours.sendto(_END, str(self.config.parent / "notify"))
        self._listener.join(60)
        self._socket.close()

    def configure(self, settings: dict[str, Any]) -> None:
        """Write its configuration anew."""
        self.config.write_text(yaml.safe_dump(settings))

    def reload(self) -> None:
        """SIGHUP."""
        self.process.send_signal(signal.SIGHUP)

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        self.process.terminate()
        return self.process.wait(180)

    def wait_ready(self, seconds: float = 90) -> None:
        """Until it has told systemd that it is; what it logged and told, where it never is."""

        def is_ready() -> bool:
            assert self.process.poll() is None, f"{self.process.args} ended: {self._seen()}"
            return "READY=1" in self._told

        wait_for(is_ready, seconds, self._seen)

    def _seen(self) -> str:
        return f"{self._told[-3:]} {self.log.read_text()[-3000:]}"

    def told(self) -> list[str]:
        """What it told systemd so far."""
        return [*self._told]

    def ask(self, path: str) -> tuple[int, str]:
        """Status and body of its health server."""
        url = f"http://127.0.0.1:{self.settings['health']['port']}{path}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def samples(self, name: str, **labels: str) -> list[Sample]:
        """Those of a metric of its own with these labels."""
        # Polled all the time: to parse the whole page takes longer than to make it.
        lines = self.ask("/metrics")[1].splitlines(keepends=True)
        own = "".join(line for line in lines if line.startswith(name))
        return [
            sample
            for family in text_string_to_metric_families(own)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def value(self, name: str, **labels: str) -> float | None:
        """Of a metric of its own, the sum of those with these labels."""
        found = [sample.value for sample in self.samples(name, **labels)]
        return sum(found) if found else None

    def scrapes(self, family: str) -> float:
        """How many of a family went well so far; none before its health server listens."""
        try:
            told = self.value("jmxlake_agent_scrapes_total", family=family, outcome="ok")
        except urllib.error.URLError:
            return 0
        return told or 0

    def family(self) -> list[psutil.Process]:
        """The process and its children, of all generations."""
        process = psutil.Process(self.process.pid)
        return [process, *process.children(recursive=True)]

    def _listen(self) -> None:
        # All the time, as systemd does: the socket holds ten datagrams only.
        while (told := self._socket.recv(4096)) != _END:
            self._told += told.decode().split("\n")
