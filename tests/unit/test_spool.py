"""Spool and recorder: every recorded scrape is on disk."""

from __future__ import annotations

import functools
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from collector.encoding.bronze_rows import Batch
from collector.errors import SpoolError
from collector.model import Answer, Identity, Reading, Scrape, Series
from collector.spool import spool as spools
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

S = 1_000_000
WINDOW = 60 * S
T0 = 1_700_000_040 * S
MIB = 1 << 20
RUNS, SCRAPES, EVENTS = (
    [column.name for column in table.columns]
    for table in (tables.RUNS, tables.SCRAPES, tables.EVENTS)
)
BROKER = Identity("cluster", "1", "4.3.1", 1)


def scrape(at: int, *, bad: bool = False) -> Scrape:
    series = Series("m", "t", 0)
    reading = Reading("m", "gauge", *((frozenset(), {series: 1.0}) if bad else ({series}, {})))  # type: ignore[arg-type]
    return Scrape("f", T0 + at, T0 + at, T0 + at, 10 * S, "ok", BROKER, Answer((reading,), 1))


def run_of(members: str) -> tuple[object, ...]:
    return (*(T0 if name in ("start", "end") else None for name in RUNS[:-4]), members, None)


def recorder(spool: Spool) -> Recorder:
    return Recorder(spool, Scope({"broker-1": None}, {}, "hash"), WINDOW)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool(tmp_path / "spool.db", MIB) as spool:
        yield spool


def test_sealed_batch_waits_until_acknowledged(spool: Spool) -> None:
    record = recorder(spool)
    for second in range(0, 180, 10):
        record.record(scrape(second * S, bad=second == 30))
        record.seal(T0 + second * S)
    (waiting,) = spool.waiting(0)
    assert waiting.number == 1
    assert [row[10:12] for row in waiting.batch.rows["runs"]] == [
        (T0, T0 + 30 * S), (T0 + 30 * S, T0 + 40 * S), (T0 + 40 * S, T0 + 60 * S),
    ]  # fmt: skip
    spool.acknowledge(1)
    (following,) = spool.waiting(0)
    assert following.number == 2


def test_batch_numbers_are_never_reused(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool.db", MIB) as spool:
        spool.seal([Batch({"events": [(1,)], "members": []})], b"")
        spool.acknowledge(1)
    with Spool(tmp_path / "spool.db", MIB) as spool:
        assert spool.last_number == 1
        spool.seal([Batch({"events": [(1,)], "members": []})], b"")
        assert spool.last_number == 2


def test_second_agent_is_refused(spool: Spool, tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="in use by another agent"):
        Spool(tmp_path / "spool.db", MIB)
    spool.close()
    Spool(tmp_path / "spool.db", MIB).close()


def test_undelivered_batches_are_returned_in_groups(spool: Spool) -> None:
    for number in range(4):
        row = (number, os.urandom(500).hex())  # hex of noise packs to a bit over 500 bytes
        spool.seal([Batch({"events": [row], "members": []})], b"")
    assert [one.number for one in spool.waiting(1)] == [1], "at least one"
    assert [one.number for one in spool.waiting(1_500)] == [1, 2]
    assert [one.number for one in spool.waiting(MIB)] == [1, 2, 3, 4]
    spool.acknowledge(3)
    assert [one.number for one in spool.waiting(MIB)] == [4]
    spool.acknowledge(4)
    assert spool.waiting(MIB) == []


def test_full_spool_writes_event_of_dropped_batches(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool.db", 1) as spool:
        record = recorder(spool)
        for second in range(0, 300, 10):
            record.record(scrape(second * S, bad=second % 20 == 0))
            record.seal(T0 + second * S)
        assert record.dropped_batches > 1
        (newest,) = spool.waiting(MIB)
        last = spool.last_number
        assert newest.number == last
        accounts = [dict(zip(SCRAPES, row, strict=False)) for row in newest.batch.rows["scrapes"]]
        spans = [(one["start"] - T0, one["end"] - T0, one["outcome"]) for one in accounts]
        assert spans == [((last - 1) * WINDOW, last * WINDOW, "ok")]
        events = [dict(zip(EVENTS, row, strict=False)) for row in newest.batch.rows["events"]]
        assert [(one["kind"], one["at"] - T0, one["old"]) for one in events] == [
            ("batch_dropped", (last - 1) * WINDOW, f"1..{last - 1}")
        ], "also of those that an event told of which was dropped itself"
        first, _, until = events[0]["new"].partition("..")
        assert datetime.fromisoformat(first).timestamp() * S == T0
        assert datetime.fromisoformat(until).timestamp() * S == T0 + (last - 1) * WINDOW


def test_batch_above_spool_limit_is_kept(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool.db", 1) as spool:
        assert spool.seal([Batch({"events": [(1,)]})], b"") == 0
        assert spool.depth().batches == 1


def test_batches_in_delivery_are_not_dropped(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool.db", 1) as spool:
        spool.seal([Batch({"events": [(1,)]})], b"")
        on_its_way = spool.waiting(MIB)
        spool.reach(1)
        assert spool.seal([Batch({"events": [(2,)]})], b"") == 0
        assert spool.seal([Batch({"events": [(3,)]})], b"") == 1
        assert spool.waiting(MIB)[:1] == on_its_way
        assert (spool.held(1), spool.held(3)) == (1, 2)


def test_batches_of_same_windows_are_dropped_together(tmp_path: Path) -> None:
    """The remaining batches would claim that the time of the dropped ones is covered."""
    with Spool(tmp_path / "spool.db", 1) as spool:
        for _ in range(2):
            spool.seal([Batch({"runs": [run_of("a")]}), Batch({"events": [(1,)]})], b"")
        assert [one.number for one in spool.waiting(MIB)] == [3, 4]
        spool.reach(3)
        assert spool.seal([Batch({"events": [(1,)]})], b"") == 0


def test_refused_batch_is_dropped_when_spool_is_full(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool.db", 1) as spool:
        spool.seal([Batch({"events": [(1,)]})], b"")
        spool.refuse(1, "for the test")
        spool.reach(1)
        assert spool.depth().refused == 1
        assert spool.seal([Batch({"events": [(2,)]})], b"") == 1
        assert (spool.depth().batches, spool.depth().refused) == (1, 0)


def sets(spool: Spool, *names: str) -> list[str]:
    """Return the sets that are delivered next."""
    return [row[0] for row in spool.sets_to_deliver([(name, "c") for name in names])]


def with_sets(*names: str) -> Batch:
    return Batch({"members": [(name, "c") for name in names], "runs": [*map(run_of, names)]})


def test_member_set_waits_for_delivery_of_its_batch(spool: Spool) -> None:
    spool.seal([with_sets("a", "b")], b"")
    spool.seal([with_sets("a", "c")], b"")
    assert sets(spool, "a", "b", "c") == ["a", "b", "c"]
    spool.acknowledge(1, {}, [("a", "c"), ("b", "c")])
    assert sets(spool, "a", "b", "c") == ["c"]
    spool.seal([with_sets("a", "b")], b"")
    assert sets(spool, "a", "b") == []


def test_other_lake_gets_sets_of_undelivered_batches(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool.db", MIB) as spool:
        spool.seal([with_sets("a", "b")], b"")
        spool.acknowledge(1, {}, [("a", "c"), ("b", "c")])
        spool.seal([with_sets("a")], b"")
    with Spool(tmp_path / "spool.db", MIB) as spool:
        spool.forget_sets()
        assert sets(spool, "a", "b") == ["a"], "b comes with the next batch that refers to it"
        spool.seal([with_sets("b")], b"")
        assert sets(spool, "a", "b") == ["a", "b"]


def test_unused_sets_are_deleted_after_a_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spools, "_KEPT_SETS", 3)
    with Spool(tmp_path / "spool.db", MIB) as spool:
        spool.seal([with_sets("a", "b")], b"")
        spool.acknowledge(1, {}, [("a", "c"), ("b", "c")])
        for _ in range(4):
            spool.seal([with_sets("a")], b"")
        spool.seal([with_sets("a", "b")], b"")
        assert sets(spool, "a", "b") == ["b"]


def test_delivered_spool_does_not_grow(tmp_path: Path) -> None:
    """Clients come and go, so each window has another set of idle clients."""
    path = tmp_path / "spool.db"
    with Spool(path, MIB) as spool:
        for number in range(1, 31):
            name = str(number)
            row = (name, "c", [f"client-{number}-{client}" for client in range(2000)])
            spool.seal([Batch({"members": [row], "runs": [run_of(name)]})], b"")
            spool.acknowledge(number, {}, [(name, "c")])
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT COUNT(*), COUNT(row) FROM sets").fetchone() == (30, 0)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert path.stat().st_size < MIB // 2


@pytest.mark.slow
def test_file_shrinks_after_outage(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    with Spool(path, 1 << 30) as spool:
        for _ in range(10):
            spool.seal([Batch({"events": [(os.urandom(MIB).hex(),)]})], b"")
    assert path.stat().st_size > 10 * MIB
    with Spool(path, 1 << 30) as spool:
        spool.acknowledge(10)
    assert path.stat().st_size < MIB


def test_emptied_spool_is_damaged_and_not_new(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    path.touch()
    with Spool(path, MIB) as spool:
        assert not spool.found, "nothing was ever in it"
        agent = spool.agent
        spool.append([b""])
    path.write_bytes(b"")
    with Spool(path, MIB) as spool:
        assert [one.kind for one in spool.found] == ["spool_damaged"]
        assert spool.agent != agent


def test_spools_with_different_suffix_are_independent(tmp_path: Path) -> None:
    with Spool(tmp_path / "broker.1", MIB) as one, Spool(tmp_path / "broker.2", MIB) as two:
        assert one.agent != two.agent


def test_only_owner_can_read_spool(spool: Spool, tmp_path: Path) -> None:
    spool.append([b""])
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes.keys() >= {"spool.db", "spool.db-wal", "spool.db.lock"}
    assert set(modes.values()) == {0o600}


def test_readable_spool_becomes_private(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    Spool(path, MIB).close()
    path.chmod(0o644)
    Spool(path, MIB).close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_file_system_without_wal_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FakeConnection(sqlite3.Connection):
        """SQLite keeps the old mode without an error if shared memory is missing."""

        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            return super().execute("SELECT 'delete'" if "journal_mode" in sql else sql, *rest)

    connect = functools.partial(sqlite3.connect, factory=FakeConnection)
    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(SpoolError, match=r"does not support a write-ahead log .* network file"):
        Spool(tmp_path / "spool.db", MIB)


def test_spool_of_old_version_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        db.execute("INSERT INTO meta VALUES ('version', '1')")
        db.commit()
    before = path.read_bytes()
    with pytest.raises(SpoolError, match=r"another version .* Deliver it with that version"):
        Spool(path, MIB)
    assert path.read_bytes() == before


def test_rows_have_cluster_of_their_scrape(spool: Spool) -> None:
    record = recorder(spool)
    for second in (0, 10):
        record.record(scrape(second * S))
    moved = replace(scrape(20 * S), identity=Identity("another", "1", "4.3.1", 2))
    record.record(moved)
    record.flush(T0 + 25 * S)
    spans = [
        (row[1], (row[10] - T0) // S, (row[11] - T0) // S)
        for one in spool.waiting(MIB)
        for row in one.batch.rows["runs"]
    ]
    assert spans == [("cluster", 0, 10), ("another", 20, 25)]


def test_unstored_rows_stay_in_encoder(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
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
    (waiting,) = spool.waiting(0)
    assert len(waiting.batch.rows["runs"]) == 1


_VICTIM = """
import sys
from pathlib import Path
from collector.spool.spool import Spool
from lakehouse import tables
from tests.unit.test_spool import S, T0, recorder, scrape

record = recorder(Spool(Path(sys.argv[1]), 1 << 20))
for second in range(0, 1000, 10):
    record.record(scrape(second * S, bad=second % 70 == 0))
    record.seal(T0 + second * S)
    print(second, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
@pytest.mark.parametrize("killed_at", [0, 50, 80, 90, 180])
def test_kill_9_keeps_every_finished_scrape(tmp_path: Path, killed_at: int) -> None:
    def rows(path: Path) -> list[object]:
        batches: list[object] = []
        with Spool(path, MIB) as spool:
            record = recorder(spool)
            for second in range(killed_at + 10, 300, 10):
                record.record(scrape(second * S, bad=second % 70 == 0))
            record.flush(T0 + 300 * S)
            for waiting in spool.waiting(MIB):
                batches += waiting.batch.rows["runs"]
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


def test_known_lake_of_fifo_is_ignored_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    program = (
        "import sys; from pathlib import Path; from collector.spool.spool import Spool\n"
        "with Spool(Path(sys.argv[1], 'spool.db'), 1) as spool:\n"
        "    spool.know_lake_of(Path(sys.argv[1], 'pipe'))\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
