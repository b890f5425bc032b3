"""Keeps the process small: memory that libraries hold back for later goes back to the kernel.

Between two deliveries, five minutes, an agent needs little of what a delivery needs. Elsewhere than
on Linux with glibc nothing is done.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_M_TRIM_THRESHOLD: Final = -1  # malloc.h
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BYTES: Final = 1 << 16
_MADV_DONTNEED: Final = 4  # mman.h
_JEMALLOC: Final = "narenas:1,dirty_decay_ms:0,muzzy_decay_ms:0"
_LIBRARIES: Final = ("/deltalake/_internal.", "/arro3/core/_core.", "/libjvm.", "/libcrypto.")


def prepare() -> None:
    """At the start, before there are threads: one heap for all of them, and nothing kept in it.

    glibc gives each thread a heap of its own, and we have thirty threads that do little. What is
    large (a batch, a table) goes back as soon as it is freed, also what delta-rs allocates.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", _JEMALLOC)
    _import_without("structlog", "rich")
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
    """After a delivery: freed memory of Python and Java, and the pages of large libraries.

    Of delta-rs (133 MB) a delivery touches 45, of the JVM most is needed at its start only. The
    files stay in the page cache as long as the host has room for them, and what is needed again is
    mapped again, a delivery's part in milliseconds.
    """
    if "jpype" in sys.modules:
        _collect_java()
    if not sys.platform.startswith("linux"):
        return
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.malloc_trim(0)
        for start, length in _read_only():
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), _MADV_DONTNEED)


def _import_without(module: str, optional: str) -> None:
    """Import a module as if a library that it uses where it can were not installed.

    structlog would load all of rich to print tracebacks, which an agent does not: 5 MB.
    """
    if module in sys.modules or optional in sys.modules:
        return
    sys.modules[optional] = None  # type: ignore[assignment]
    try:
        importlib.import_module(module)
    finally:
        del sys.modules[optional]


def _collect_java() -> None:
    """Let Java give back what its heap does not need: by itself it would wait until it is full."""
    import jpype  # noqa: PLC0415 - only where there is a JVM

    if jpype.isJVMStarted():
        jpype.JClass("java.lang.System").gc()


def _read_only() -> list[tuple[int, int]]:
    """Where their code and constants are: never written to, so they are as they are in the file.

    Of what is only readable that is just the beginning of the file: what follows was written to
    when the library was loaded, and would be lost.
    """
    found = []
    for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
        addresses, permissions, offset = line.split(maxsplit=3)[:3]
        constants = permissions == "r--p" and int(offset, 16) == 0
        named = any(library in line for library in _LIBRARIES)
        if named and (permissions == "r-xp" or constants):
            start, end = (int(address, 16) for address in addresses.split("-"))
            found.append((start, end - start))
    return found
