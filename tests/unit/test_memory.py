"""Memory of the process: measurement, freed memory and garbage collection."""

from __future__ import annotations

import gc
import mmap
import subprocess
import sys
from typing import TYPE_CHECKING

from collector.agent.agent import Agent
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from collector.telemetry import memory

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

_MIB = 1 << 20
_S = 1_000_000
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


class _SetClock:
    def __init__(self) -> None:
        self.now_us = 0

    def wall_us(self) -> int:
        return self.now_us

    def steady_us(self) -> int:
        return self.now_us


def test_garbage_is_collected_once_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected, clock = list[int](), _SetClock()
    monkeypatch.setattr(gc, "collect", lambda: collected.append(clock.now_us // _S))
    with Spool(tmp_path / "spool.db", _MIB) as spool:
        recorder = Recorder(spool, Scope({"broker-1": None}, {}, "hash"), 300 * _S)
        agent = Agent([], recorder, lambda: 0, 30 * _S, clock)
        for second in range(0, 200, 2):  # as the main loop
            clock.now_us = second * _S
            agent._collect_garbage()
    assert collected == [60, 120, 180]
