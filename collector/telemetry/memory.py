"""Memory of the process: settings of malloc, garbage collection and measurement.

Between two deliveries an agent needs little of the memory that a delivery needs, so freed memory
returns to the kernel. Without glibc, the calls to glibc do nothing.
"""

import ctypes
import gc
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from collector.sources.java.jvm import started_jvm

_M_TRIM_THRESHOLD: Final = -1  # malloc.h
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 1 << 16
_JEMALLOC: Final = "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0"


def configure_malloc() -> None:
    """Set one malloc arena for all threads. Call it before any thread starts.

    By default glibc gives each thread an arena, and an agent has thirty threads with little work.
    Large blocks (a batch, a table) of Python and delta-rs return to the kernel when they are
    freed.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", _JEMALLOC)
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def freeze_garbage() -> None:
    """Exclude all present objects from garbage collection and disable automatic collection.

    Call it after all imports. Python's automatic collection can start a collection of Java in any
    thread, and each such thread stays attached to the JVM. The agent calls ``gc.collect`` itself.
    """
    gc.collect()
    gc.freeze()
    gc.disable()


def trim() -> None:
    """Return freed memory of Python and Java to the kernel, after the start or a delivery.

    Java would otherwise wait until its heap is full.
    """
    if (java_class := started_jvm()) is not None:
        java_class("java.lang.System").gc()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def anonymous_bytes() -> int:
    """Return the process's anonymous memory (``RssAnon``, from /proc/self/statm).

    The kernel cannot reclaim it, unlike the pages of library files.
    """
    resident, files = _pages()
    return (resident - files) * os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Return the process's resident memory, with the pages of library files."""
    return _pages()[0] * os.sysconf("SC_PAGE_SIZE")


def _pages() -> tuple[int, int]:
    """Return the resident pages and, of these, the pages of files (proc(5), statm)."""
    _, resident, files, *_ = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(resident), int(files)


def java() -> tuple[int, float] | None:
    """Return the JVM's used heap (bytes) and garbage collection time (s). None without a JVM."""
    if (java_class := started_jvm()) is None:
        return None
    beans = java_class("java.lang.management.ManagementFactory")
    heap = beans.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    collected = sum(bean.getCollectionTime() for bean in beans.getGarbageCollectorMXBeans())
    return int(heap), collected / 1e3
