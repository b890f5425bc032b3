"""Handing memory back: pages of libraries go, what a process changed in a mapped file stays."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
from typing import TYPE_CHECKING

from collector.telemetry import memory

if TYPE_CHECKING:
    from pathlib import Path

_LIBRARIES = """
from pathlib import Path
from collector.telemetry import memory
import deltalake

def resident_kb():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssFile:")[2].split()[0])

before = resident_kb()
memory.trim()
print(before - resident_kb())
assert not deltalake.DeltaTable.is_deltatable("/nowhere")
"""


def test_pages_of_libraries_are_no_longer_resident() -> None:
    command = [sys.executable, "-c", _LIBRARIES]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ran.stdout) > 10_000


def test_changed_pages_of_a_mapped_file_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "library"
    file.write_bytes(b"-" * mmap.PAGESIZE * 2)
    with file.open("r+b") as opened:
        mapped = mmap.mmap(opened.fileno(), 0, flags=mmap.MAP_PRIVATE)
    mapped[0:7] = b"changed"
    start = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(mapped)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(start, ctypes.c_size_t(len(mapped)), mmap.PROT_READ) == 0

    memory.trim()

    assert mapped[0:8] == b"changed-"
