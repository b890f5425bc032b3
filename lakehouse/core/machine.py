"""How much of this machine a process may use."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
"""The memory of the container, where there is one."""


def cores(mib_each: int) -> int:
    """The cores that this process may use, as far as the memory suffices; at least one.

    Args:
        mib_each: Memory that each of them needs, MiB.
    """
    allowed = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    number = len(allowed(0)) if allowed else os.cpu_count() or 1
    return max(1, min(number, _memory() // (mib_each << 20)))


def _memory() -> int:
    """Bytes of memory that this process may have."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):  # "max": no limit
        memory = min(memory, int(_LIMIT.read_text("utf-8")))
    return memory
