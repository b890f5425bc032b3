"""Starts processes that end with us, however we end.

Linux kills a child with PR_SET_PDEATHSIG when the *thread* that started it ends, so every process
is started from one thread that lives as long as the launcher.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Launcher:
    """Starts processes, each in a process group of its own: Ctrl-C reaches us, not them."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="launcher")
        setpriv = shutil.which("setpriv")  # of util-linux; elsewhere only a clean end is covered
        self._guard = (setpriv, "--pdeathsig", "KILL") if setpriv else ()

    def start(
        self, command: list[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process whose output is appended to ``log``."""
        return self._thread.submit(self._start, command, log, environment).result()

    def close(self) -> None:
        """End the launcher; whatever still runs of its processes is killed by the kernel."""
        self._thread.shutdown()

    def _start(
        self, command: list[str], log: Path, environment: Mapping[str, str] | None
    ) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                [*self._guard, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                process_group=0,
            )


def end(process: subprocess.Popen[bytes], grace: float) -> int:
    """Ask a process to end, and kill it after ``grace`` seconds; its exit code is returned."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGCONT)  # a stopped process would not hear the rest
        process.terminate()
    try:
        return process.wait(grace)
    except subprocess.TimeoutExpired:
        return kill(process)


def kill(process: subprocess.Popen[bytes]) -> int:
    """Kill a process (SIGKILL) and wait until it is gone; its exit code is returned."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    return process.wait()


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log, for an error message."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-count:])
    except FileNotFoundError:
        return "(no log)"
