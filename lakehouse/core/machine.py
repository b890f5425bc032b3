"""Cores and memory of this machine that a process can use."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
"""Memory limit of a container."""


def cores(mib_each: int) -> int:
    """Return the number of cores that this process can use, limited by memory; at least one.

    Args:
        mib_each: Memory per core (MiB).
    """
    allowed = getattr(os, "sched_getaffinity", None)  # only on Linux
    number = len(allowed(0)) if allowed else os.cpu_count() or 1
    return max(1, min(number, _memory() // (mib_each << 20)))


def _memory() -> int:
    """Return the memory limit of this process (bytes)."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # "max": no limit
        memory = min(memory, int(_LIMIT.read_text("utf-8")))
    return memory
