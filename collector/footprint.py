"""Keeps the process small: memory that libraries hold back for later goes back to the kernel.

Between two deliveries, five minutes, an agent needs little of what a delivery needs. Where there is
no glibc, its part is left out.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_M_TRIM_THRESHOLD: Final = -1  # malloc.h
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 1 << 16
_JEMALLOC: Final = "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0"


class JavaMemory(NamedTuple):
    """Bytes of the heap in use, and seconds spent on collecting garbage."""

    heap_bytes: int
    gc_seconds: float


def prepare() -> None:
    """At the start, before there are threads: one heap for all of them, and nothing kept in it.

    glibc gives each thread a heap of its own, and we have thirty threads that do little. What is
    large (a batch, a table) goes back as soon as it is freed, also what delta-rs allocates.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", _JEMALLOC)
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def settle() -> None:
    """When all is imported: what lives as long as the process is not looked through any more.

    JPype lets Python collect its garbage whenever Java did: several times a minute.
    """
    gc.collect()
    gc.freeze()


def hand_back() -> None:
    """After a delivery: freed memory of Python and of Java.

    By itself Java would wait until its heap is full.
    """
    jvm = _jvm()
    if jvm is not None:
        jvm("java.lang.System").gc()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def resident_bytes() -> int:
    """What the process has in memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def java() -> JavaMemory | None:
    """What the JVM in this process takes; None where there is none."""
    jvm = _jvm()
    if jvm is None:
        return None
    beans = jvm("java.lang.management.ManagementFactory")
    heap = beans.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    collected = sum(one.getCollectionTime() for one in beans.getGarbageCollectorMXBeans())
    return JavaMemory(int(heap), collected / 1e3)


def _jvm() -> Callable[[str], Any] | None:
    """Gives Java's classes by name, where there is a JVM."""
    jpype = sys.modules.get("jpype")
    return jpype.JClass if jpype is not None and jpype.isJVMStarted() else None
