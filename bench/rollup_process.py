"""A process and all that it starts: how long, how much processor, how much memory at once."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import psutil

from demo.jars import delta_jars
from lakehouse.core.spark_session import JARS_SETTING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOOK_SECONDS: Final = 1.0  # a look goes through all processes: 0.03 s
_START: Final = (
    "from lakehouse.core.spark_session import session; session().sql('SELECT 1').collect()"
)


class Cost(NamedTuple):
    """What a process took.

    Attributes:
        seconds: Wall clock, from before it was started until it had ended.
        cpu_seconds: User and system time of all its processes, as far as they were seen.
        peak_gib: Most memory that all of them had resident at one instant.
        said: Its standard output.
    """

    seconds: float
    cpu_seconds: float
    peak_gib: float
    said: str


class FailedError(Exception):
    """A process that is measured ended otherwise than it should."""


def measure(
    command: Sequence[str], environment: Mapping[str, str] | None = None, beside: Sequence[int] = ()
) -> Cost:
    """Run a command to its end.

    Args:
        command: The command.
        environment: All its variables; by default ours.
        beside: Processes that work for it: their processor time and memory count as its own.

    Raises:
        FailedError: It ended with another code than 0.
    """
    jars = {JARS_SETTING: str(delta_jars()[0].parent)}
    variables = {**jars, **(os.environ if environment is None else environment)}
    roots, cpu, before = (*beside,), dict[int, float](), dict[int, float]()
    _look_at(roots, before)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=variables)
        peak = 0
        while process.poll() is None:
            peak = max(peak, _look_at((process.pid, *roots), cpu))
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_SECONDS)
        seconds = time.monotonic() - began
        if process.returncode:
            err.seek(0)
            last = err.read().decode(errors="replace").strip().splitlines()[-3:]
            raise FailedError(f"{' '.join(command[:3])} ended with {process.returncode}: {last}")
        out.seek(0)
        _look_at(roots, cpu)
        spent = sum(cpu.values()) - sum(before.values())
        return Cost(seconds, spent, peak / 2**30, out.read().decode())


def _look_at(roots: Sequence[int], cpu: dict[int, float]) -> int:
    return sum(look(root, cpu) for root in roots)


def spark_start() -> Cost:
    """What a process costs that only starts Spark, and asks it nothing."""
    return measure([sys.executable, "-c", _START])


def look(root: int, cpu: dict[int, float]) -> int:
    """Bytes resident now; ``cpu`` keeps the processor seconds of every process that was seen."""
    resident = 0
    try:
        top = psutil.Process(root)
        for process in (top, *top.children(recursive=True)):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    cpu[process.pid] = times.user + times.system
                    resident += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
    except psutil.NoSuchProcess:
        return 0
    return resident
