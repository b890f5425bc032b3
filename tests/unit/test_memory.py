"""Memory of the process: what is measured, and what returns to the kernel."""

from __future__ import annotations

import mmap
import subprocess
import sys
from typing import TYPE_CHECKING

from collector.telemetry import memory

if TYPE_CHECKING:
    from pathlib import Path

_MIB = 1 << 20
_FREED = """
from collector.telemetry import memory

before = memory.anonymous_bytes()
blocks = [bytearray(b"x" * 10_000) for _ in range(5_000)]  # below malloc's limit for mmap
blocks = blocks[::50]  # without trim, malloc keeps the holes between these
assert memory.anonymous_bytes() - before > 40_000_000
memory.trim()
print(memory.anonymous_bytes() - before)
"""


def test_pages_of_files_are_resident_and_not_anonymous(tmp_path: Path) -> None:
    file = tmp_path / "library"
    file.write_bytes(b"-" * 32 * _MIB)
    anonymous, resident = memory.anonymous_bytes(), memory.resident_bytes()
    with (
        file.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        assert {mapped[at] for at in range(0, len(mapped), mmap.PAGESIZE)} == {ord("-")}
        assert memory.resident_bytes() - resident > 24 * _MIB
        assert memory.anonymous_bytes() - anonymous < 8 * _MIB


def test_changed_pages_are_anonymous() -> None:
    before = memory.anonymous_bytes()
    with mmap.mmap(-1, 32 * _MIB, flags=mmap.MAP_PRIVATE) as mapped:
        mapped[:] = b"x" * len(mapped)
        assert memory.anonymous_bytes() - before > 24 * _MIB


def test_trim_returns_freed_memory() -> None:
    ran = subprocess.run([sys.executable, "-c", _FREED], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 10_000_000
