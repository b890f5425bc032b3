"""The spool and the recorder: what was read is on disk, whatever happens next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from collector.batches import Batch
from collector.errors import SpoolError
from collector.recorder import Recorder
from collector.samples import Answer, Identity, Reading, Scrape, Series
from collector.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

S = 1_000_000
WINDOW = 60 * S
T0 = 1_700_000_040 * S
MIB = 1 << 20
BROKER = Identity("cluster", "1", "4.3.1", 1)


def scrape(at: int, *, bad: bool = False) -> Scrape:
    series = Series("m", "t", 0)
    reading = Reading("m", "gauge", *((frozenset(), {series: 1.0}) if bad else ({series}, {})))  # type: ignore[arg-type]
    return Scrape("f", T0 + at, T0 + at, T0 + at, 10 * S, "ok", BROKER, Answer((reading,), 1))


def recorder(spool: Spool) -> Recorder:
    return Recorder(spool, "broker-1", WINDOW, {}, "hash", None)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool(tmp_path / "spool.db", MIB) as spool:
        yield spool


def test_a_sealed_batch_waits_until_it_is_acknowledged(spool: Spool) -> None:
    record = recorder(spool)
    for second in range(0, 180, 10):
        record.record(scrape(second * S, bad=second == 30))
        record.seal(T0 + second * S)
    waiting = spool.oldest()
    assert waiting is not None
    assert waiting.number == 1
    assert [row[10:12] for row in waiting.batch.rows["runs"]] == [
        (T0, T0 + 30 * S), (T0 + 30 * S, T0 + 40 * S), (T0 + 40 * S, T0 + 60 * S),
    ]  # fmt: skip
    spool.acknowledge(1)
    following = spool.oldest()
    assert following is not None
    assert following.number == 2


def test_batch_numbers_are_never_used_again(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool.db", MIB) as spool:
        spool.seal(Batch({"events": [(1,)], "members": []}), b"")
        spool.acknowledge(1)
    with Spool(tmp_path / "spool.db", MIB) as spool:
        assert spool.last_number() == 1
        spool.seal(Batch({"events": [(1,)], "members": []}), b"")
        assert spool.last_number() == 2


def test_a_second_agent_is_refused(spool: Spool, tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="in use by another agent"):
        Spool(tmp_path / "spool.db", MIB)
    spool.close()
    Spool(tmp_path / "spool.db", MIB).close()


def test_when_the_spool_is_full_the_oldest_batch_goes_and_it_is_said(tmp_path: Path) -> None:
    numbers: list[int] = []
    with Spool(tmp_path / "spool.db", 3_000) as spool:
        for number in range(5):
            row = (number, os.urandom(1_000).hex())  # hex of noise packs to a bit over 1,000 bytes
            numbers += spool.seal(Batch({"events": [row], "members": []}), b"")
        assert numbers == [1, 2, 3]
        assert spool.depth()[0] == 2


def test_a_damaged_spool_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(SpoolError, match=r"spool\.db: file is not a database"):
        Spool(path, MIB)


def test_what_cannot_be_kept_stays_in_the_encoder(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = recorder(spool)
    for second in range(0, 100, 10):
        record.record(scrape(second * S))

    def full(*_: object) -> list[int]:
        raise SpoolError("spool: database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(spool, "seal", full)
        with pytest.raises(SpoolError):
            record.seal(T0 + 100 * S)
    assert record.seal(T0 + 100 * S)
    waiting = spool.oldest()
    assert waiting is not None
    assert len(waiting.batch.rows["runs"]) == 1


_VICTIM = """
import sys
from pathlib import Path
from collector.spool import Spool
from tests.unit.test_spool import S, T0, recorder, scrape

record = recorder(Spool(Path(sys.argv[1]), 1 << 20))
for second in range(0, 1000, 10):
    record.record(scrape(second * S, bad=second % 70 == 0))
    record.seal(T0 + second * S)
    print(second, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("killed_at", [0, 50, 80, 90, 180])
def test_after_kill_9_every_finished_scrape_is_there(tmp_path: Path, killed_at: int) -> None:
    def rows(path: Path) -> list[object]:
        batches: list[object] = []
        with Spool(path, MIB) as spool:
            record = recorder(spool)
            for second in range(killed_at + 10, 300, 10):
                record.record(scrape(second * S, bad=second % 70 == 0))
            record.flush(T0 + 300 * S)
            while (waiting := spool.oldest()) is not None:
                batches += waiting.batch.rows["runs"]
                spool.acknowledge(waiting.number)
        return sorted(batches, key=str)

    path = tmp_path / "killed.db"
    victim = subprocess.Popen(
        [sys.executable, "-c", _VICTIM, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert victim.stdin is not None
    assert victim.stdout is not None
    with victim:
        for second in range(0, killed_at + 10, 10):
            assert int(victim.stdout.readline()) == second
            if second < killed_at:
                victim.stdin.write("\n")
                victim.stdin.flush()
        victim.send_signal(signal.SIGKILL)

    untouched = tmp_path / "untouched.db"
    with Spool(untouched, MIB) as spool:
        record = recorder(spool)
        for second in range(0, killed_at + 10, 10):
            record.record(scrape(second * S, bad=second % 70 == 0))
    assert rows(path) == rows(untouched)
