"""``jmxlake rollup --every`` as a process: its passes, and the processor time of all it started."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final, Self

from bench.rollup_process import FailedError, look
from demo.agents import script
from demo.jars import delta_jars
from demo.launcher import end, last_lines
from lakehouse.core.spark_session import JARS_SETTING

if TYPE_CHECKING:
    from pathlib import Path

_LOOK_SECONDS: Final = 0.5
_GRACE_SECONDS: Final = 120
_IDLE_PASSES: Final = 12


class Every:
    """A rollup that goes on until it is closed; closing it checks that it ends with 0.

    Args:
        lake: The lake.
        engine: ``local`` or ``spark``.
        every: From turn to turn, as the command takes it.
        log: Where its standard error goes; its passes go beside it.
        window: Seconds of the agents' windows.
    """

    def __init__(self, lake: Path, engine: str, every: str, log: Path, window: int = 300) -> None:
        self._log, self._lines = log, log.with_suffix(".passes")
        self._read = 0
        self._cpu: dict[int, float] = {}
        self._command = [
            *(script("jmxlake"), "rollup", str(lake), "--engine", engine, "--every", every),
            *("--window", f"{window}s", "--json"),
        ]

    def __enter__(self) -> Self:
        environment = {JARS_SETTING: str(delta_jars()[0].parent), **os.environ}
        with self._lines.open("wb") as out, self._log.open("wb") as err:
            self._process = subprocess.Popen(
                self._command, stdout=out, stderr=err, env=environment, process_group=0
            )
        return self

    def __exit__(self, *_: object) -> None:
        if code := end(self._process, _GRACE_SECONDS):
            raise FailedError(f"the rollup ended with {code}: {last_lines(self._log)}")

    def next_pass(self, seconds: float = 600) -> dict[str, Any]:
        """Wait for the next pass that did not fail; return its JSON."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            lines = self._lines.read_text("utf-8").splitlines()
            while self._read < len(lines):
                self._read += 1
                result: dict[str, Any] = json.loads(lines[self._read - 1])
                if "error" not in result:
                    return result
            if self._process.poll() is not None:
                break
            look(self._process.pid, self._cpu)
            time.sleep(_LOOK_SECONDS)
        raise FailedError(f"no pass in {seconds:.0f} s: {last_lines(self._log)}")

    def await_hours(self) -> dict[str, Any]:
        """Wait for a pass that recomputed hours."""
        while not (result := self.next_pass())["hours"]:
            pass
        return result

    def cpu_seconds(self) -> float:
        """User and system time of it and all that it started, so far."""
        look(self._process.pid, self._cpu)
        return sum(self._cpu.values())

    def idle_cpu_seconds(self) -> float:
        """The same of a pass while no table changes, on average.

        The first pass after one that wrote still reads the tables.
        """
        self.next_pass()
        self.next_pass()
        before = self.cpu_seconds()
        for _ in range(_IDLE_PASSES):
            self.next_pass()
        return (self.cpu_seconds() - before) / _IDLE_PASSES
