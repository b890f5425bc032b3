"""Keeps the process small: memory that libraries hold back for later goes back to the kernel.

Between two deliveries, five minutes, an agent needs little of what a delivery needs. Where there is
no glibc, its part is left out.
"""

import ctypes
import gc
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from collector.sources.java.jvm import started_jvm

_M_TRIM_THRESHOLD: Final = -1  # malloc.h
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 1 << 16
_MADV_DONTNEED: Final = 4  # mman.h
# A mapped file that cannot be written to and of which no page was changed (by the loader, a probe).
_UNCHANGED: Final = re.compile(
    r"^(\w+)-(\w+) r-.p \S+ \S+ [1-9].*\n(?:[A-Z].*\n)*?Anonymous: +0 kB$", re.MULTILINE
)
SETTLED_SECONDS: Final = 10.0
"""How long pages must have been unchanged before they are dropped."""
_JEMALLOC: Final = "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0"


def configure_malloc() -> None:
    """At the start, before there are threads: one malloc arena for all of them, trimmed at once.

    glibc gives each thread a heap of its own, and we have thirty threads that do little. What is
    large (a batch, a table) goes back as soon as it is freed, also what delta-rs allocates.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", _JEMALLOC)
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def freeze_garbage() -> None:
    """When all is imported: exclude objects that live as long as the process from collection.

    From now on only who calls ``gc.collect`` collects: with every collection of Python's JPype may
    have Java collect, in whichever thread that is, and each such thread stays attached to the JVM.
    """
    gc.collect()
    gc.freeze()
    gc.disable()


def trim() -> None:
    """After the start or a delivery: return freed memory of Python and Java, and library pages.

    By itself Java would wait until its heap is full. A delivery needs 50 MB of delta-rs's code, and
    nothing else does: the pages stay in the kernel's cache and are mapped again by the next one.
    """
    if (java_class := started_jvm()) is not None:
        java_class("java.lang.System").gc()
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.malloc_trim(0)
        for start, end in _settled(time.monotonic()):
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED)


_first_seen: dict[tuple[int, int], float] = {}
"""When each unchanged mapping was first seen, by its addresses."""


def _settled(now: float) -> list[tuple[int, int]]:
    """The mappings that have been unchanged for a while.

    A library that a thread of Java loads just now is mapped as unchanged, too, until the loader has
    relocated it: to drop its pages then crashes the process.
    """
    text = Path("/proc/self/smaps").read_text("utf-8")
    found = {(int(one[1], 16), int(one[2], 16)) for one in _UNCHANGED.finditer(text)}
    for gone in _first_seen.keys() - found:
        del _first_seen[gone]
    for one in found:
        _first_seen.setdefault(one, now)
    return [one for one, since in _first_seen.items() if now - since >= SETTLED_SECONDS]


def resident_bytes() -> int:
    """Resident memory of the process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def java() -> tuple[int, float] | None:
    """Bytes of Java's heap in use, and seconds it collected garbage; None without a JVM."""
    if (java_class := started_jvm()) is None:
        return None
    beans = java_class("java.lang.management.ManagementFactory")
    heap = beans.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    collected = sum(one.getCollectionTime() for one in beans.getGarbageCollectorMXBeans())
    return int(heap), collected / 1e3
