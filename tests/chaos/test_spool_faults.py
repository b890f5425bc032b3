"""Disk faults of a spool: torn and flipped bytes, a full, broken or read-only disk.

Every recorded scrape is in a batch afterwards, or an event reports the loss.
"""

from __future__ import annotations

import random
import resource
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

import pytest

from collector.encoding.bronze_rows import Batch
from collector.errors import SpoolError
from collector.model import Answer, Identity, Reading, Scrape, Series
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from collector.spool.spool_file import UnreadableBatchError, read_only
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.chaos

S = 1_000_000
WINDOW = 60 * S
T0 = 1_700_000_040 * S
MIB = 1 << 20
BROKER = Identity("cluster", "1", "4.3.1", 1)
RUN = {column.name: at for at, column in enumerate(tables.RUNS.columns)}
ACCOUNT = {column.name: at for at, column in enumerate(tables.SCRAPES.columns)}
EVENT = {column.name: at for at, column in enumerate(tables.EVENTS.columns)}

Content = tuple[list[tuple[int, Any]], Any, str, int]


def scrape(second: int, value: float = 0.0) -> Scrape:
    series, at = Series("m", "t", 0), T0 + second * S
    reading = Reading("m", "gauge", values={series: value})
    return Scrape("f", at, at, at, 10 * S, "ok", BROKER, Answer((reading,), 1))


def recorder(spool: Spool) -> Recorder:
    return Recorder(spool, Scope({"broker-1": None}, {}, "hash"), WINDOW)


def content(spool: Spool) -> Content:
    batches = [(one.number, one.batch.rows) for one in spool.waiting(1 << 40)]
    return batches, spool.recover(), spool.agent, spool.last_number


def told(spool: Spool, table: str, at: dict[str, int], *names: str) -> list[tuple[Any, ...]]:
    """Columns of all rows that wait; instants in seconds since T0."""
    rows = [row for one in spool.waiting(1 << 40) for row in one.batch.rows.get(table, ())]
    return sorted(
        tuple(
            (row[at[name]] - T0) // S if name in ("start", "end", "at") else row[at[name]]
            for name in names
        )
        for row in rows
    )


@pytest.fixture(scope="module")
def spools(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Content]:
    """Return a spool after an orderly stop, one after a kill with its log, and their content."""
    noise = random.Random(5)
    stopped, killed = (tmp_path_factory.mktemp(name) for name in ("stopped", "killed"))
    with Spool(stopped / "spool.db", 1 << 30) as spool:
        for number in range(6):
            spool.append([noise.randbytes(200)])
            sets = [(f"{number}", "c")]
            rows = {"events": [(number, noise.randbytes(3_000).hex())], "members": sets}
            spool.seal([Batch(rows)], noise.randbytes(5_000))
        for _ in range(10):
            spool.append([noise.randbytes(300)])
        shutil.copytree(stopped, killed, dirs_exist_ok=True)
        kept = content(spool)
    # Without SQLite's own parting words the batches would be tuples in one and lists in the other.
    return [stopped, killed], kept


def damage(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    where = chance.randrange(len(data))
    match chance.choice(["flip", "flip", "header", "zeros", "cut"]):
        case "flip":
            data[where] ^= 1 << chance.randrange(8)
        case "header":
            data[where % 100] ^= 1 << chance.randrange(8)
        case "zeros":
            data[where : where + 512] = bytes(min(512, len(data) - where))
        case "cut":
            del data[where:]
    path.write_bytes(data)


@pytest.mark.parametrize("seed", range(60))
def test_damage_is_harmless_or_found(
    spools: tuple[list[Path], Content], tmp_path: Path, seed: int
) -> None:
    folders, kept = spools
    chance = random.Random(seed)
    folder = tmp_path / "spool"
    shutil.copytree(folders[seed % 2], folder)
    files = [one for one in folder.glob("spool.db*") if one.name[8:] in ("", "-wal")]
    damage(chance.choice(sorted(one for one in files if one.stat().st_size)), chance)
    with Spool(folder / "spool.db", 1 << 30) as spool:
        kinds = {one.kind for one in spool.found}
        now = content(spool)
        aside = [one.name for one in folder.glob("*.damaged-*Z")]
        assert all(batch in kept[0] for batch in now[0]), "what is there is as it was written"
        if kinds:
            assert [one.new for one in spool.found] == aside
            assert spool.agent != kept[2]
        else:  # SQLite ends its log where that is damaged, and says nothing
            assert not aside
            assert (spool.agent, [one[0] for one in now[0]]) == (kept[2], [*range(1, now[3] + 1)])
            assert now == kept or folders[seed % 2].name.startswith("killed")
        spool.append([b"it works"])
        spool.seal([Batch({"events": [(7,)]})], b"state")
    with Spool(folder / "spool.db", 1 << 30) as spool:
        assert not spool.found, "it is told once"


def test_crash_while_setting_spool_aside_restores_no_row(
    spools: tuple[list[Path], Content], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would replay the old log into the new spool."""
    folder = tmp_path / "spool"
    shutil.copytree(spools[0][1], folder)
    path = folder / "spool.db"
    path.write_bytes(b"no database" + path.read_bytes()[11:])
    (folder / "spool.db.damaged-29990101T000000Z").write_bytes(b"of a clock that was wrong")
    rename, calls = type(path).rename, 0

    def dies_the_second_time(old: Path, new: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt
        rename(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(type(path), "rename", dies_the_second_time)
        with pytest.raises(KeyboardInterrupt):
            Spool(path, MIB)
    with Spool(path, MIB) as spool:
        assert [one.kind for one in spool.found] == ["spool_damaged"]
        assert spool.is_empty()
        assert spool.recover() == (None, [])


class FixedClock:
    """A clock with a fixed time."""

    def wall_us(self) -> int:
        return T0

    def steady_us(self) -> int:
        return 0


def test_file_set_aside_replaces_no_other(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    Spool(path, MIB).close()
    for text in (b"first", b"second", b"third"):
        path.write_bytes(text * 100)
        Spool(path, MIB, FixedClock()).close()
    aside = path.parent.glob("spool.db.damaged-*Z")
    assert {one.read_bytes()[:5] for one in aside} == {b"first", b"secon", b"third"}


@pytest.mark.parametrize("kind", ["text", "database"])
def test_a_file_of_somebody_else_is_refused_and_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "agent.yaml"
    if kind == "text":
        path.write_text("source: x")
    else:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE theirs (x)")
            db.commit()
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(SpoolError, match=r"is not a spool .* Set spool\.path") as caught:
            Spool(path, MIB)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.damaged-*"))


def test_batch_damaged_at_run_time_is_reported_by_number(
    tmp_path: Path,
) -> None:
    path = tmp_path / "spool.db"
    with Spool(path, MIB) as spool:
        for number in range(3):
            spool.seal([Batch({"events": [(number,)]})], b"")
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE batches SET rows = x'00' WHERE number = 2")
            db.commit()
        with pytest.raises(UnreadableBatchError, match="batch 2 of the spool is damaged") as caught:
            spool.waiting(MIB)
        spool.refuse(caught.value.number, "damaged")
        assert [one.number for one in spool.waiting(MIB)] == [1, 3]


def test_torn_tail_is_unknown_time(tmp_path: Path) -> None:
    alive, torn = tmp_path / "alive", tmp_path / "torn"
    alive.mkdir()
    with Spool(alive / "spool.db", MIB) as spool:
        record = recorder(spool)
        for second in (0, 10):
            record.record(scrape(second))
        log = (alive / "spool.db-wal").read_bytes()
        for second in (20, 30):
            record.record(scrape(second, 1.0))
        shutil.copytree(alive, torn)
    after = (torn / "spool.db-wal").read_bytes()
    grown = [at for at, (old, new) in enumerate(zip_longest(log, after)) if old != new]
    (torn / "spool.db-wal").write_bytes(after[: grown[0] + 50])
    with Spool(torn / "spool.db", MIB) as spool:
        record = recorder(spool)
        for second in (33, 40):
            record.record(scrape(second))
        record.flush(T0 + 45 * S)
        assert told(spool, "runs", RUN, "start", "end", "value") == [(0, 10, 0.0), (33, 45, 0.0)]


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A file system of its own, in memory."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def test_full_disk_loses_and_doubles_no_recorded_sample(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=4m") as disk, Spool(disk / "spool.db", MIB) as spool:
        record = recorder(spool)
        for second in range(0, 60, 10):
            record.record(scrape(second))
        fill(disk / "ballast")
        refused = []
        for second in range(60, 200, 10):  # the log has some room left at first
            with suppress(SpoolError):
                record.seal(T0 + second * S)
            try:
                record.record(scrape(second, 1.0))
            except SpoolError:
                refused.append(second)
        assert refused
        with pytest.raises(SpoolError, match="full"):
            record.flush(T0 + 200 * S)
        assert record.sealed_us < T0 + 200 * S
        (disk / "ballast").unlink()
        for second in (200, 210):
            record.record(scrape(second))
        record.flush(T0 + 215 * S)
        check_the_gap(spool, refused[0])


def check_the_gap(spool: Spool, first_refused: int) -> None:
    """All before the first attempt that was refused is known, what came until 200 s is not."""
    runs = told(spool, "runs", RUN, "start", "end", "value")
    assert [run for run in runs if run[0] >= 200] == [(200, 215, 0.0)]
    before = [run for run in runs if run[0] < 200]
    assert sum(end - start for start, end, _ in before) == first_refused - 10
    assert {run[2] for run in before if run[0] < 60} == {0.0}
    assert all(run[2] == 1.0 for run in before if run[0] >= 60)
    accounts = told(spool, "scrapes", ACCOUNT, "start", "end", "outcome")
    assert {one[2] for one in accounts} == {"ok"}
    assert all(first[1] <= second[0] for first, second in pairwise(accounts))
    (event,) = told(spool, "events", EVENT, "kind", "old")
    assert event[0] == "spool_unwritable"
    assert datetime.fromisoformat(event[1]).timestamp() == T0 / S + first_refused


def test_failed_write_loses_no_recorded_sample(tmp_path: Path) -> None:
    """A kernel limit on file size gives the same SQLite error as a broken disk."""
    with Spool(tmp_path / "spool.db", MIB) as spool:
        record = recorder(spool)
        for second in range(0, 60, 10):
            record.record(scrape(second))
        with no_file_may_grow():
            for second in range(60, 200, 10):
                with pytest.raises(SpoolError, match="disk"):
                    record.record(scrape(second, 1.0))
        for second in (200, 210):
            record.record(scrape(second))
        record.flush(T0 + 215 * S)
        check_the_gap(spool, 60)


@contextmanager
def no_file_may_grow(beyond: int = 0) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (beyond, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_kill_on_full_disk_keeps_no_older_value(
    tmp_path: Path,
) -> None:
    alive, killed = tmp_path / "alive", tmp_path / "killed"
    alive.mkdir()
    with Spool(alive / "spool.db", MIB) as spool:
        record = recorder(spool)
        record.record(scrape(0))
        with no_file_may_grow(beyond=200), pytest.raises(SpoolError):
            record.record(scrape(10, 1.0))
        shutil.copytree(alive, killed)
    with Spool(killed / "spool.db", MIB) as spool:
        record = recorder(spool)
        record.record(scrape(12))
        record.flush(T0 + 15 * S)
        assert told(spool, "runs", RUN, "start", "end", "value") == [(0, 0, 0.0), (12, 15, 0.0)]


def test_a_spool_on_a_read_only_disk_is_one_clear_line(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=4m") as disk:
        Spool(disk / "spool.db", MIB).close()
        before = sorted(disk.iterdir())
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(SpoolError, match=r"[Rr]ead-only .*\. Check the disk") as caught:
            Spool(disk / "spool.db", MIB)
        assert "\n" not in str(caught.value)
        assert sorted(disk.iterdir()) == before
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        Spool(disk / "spool.db", MIB).close()


def test_a_kill_while_the_spool_is_made_is_undone(tmp_path: Path) -> None:
    """Until it has its write-ahead log, SQLite keeps a journal that only a writer can undo."""
    made, killed = tmp_path / "made.db", tmp_path / "killed.db"
    with Spool(made, MIB) as spool:
        agent = spool.agent
    with closing(sqlite3.connect(made, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN")
        for number in range(50):
            db.execute("INSERT INTO journal VALUES (?, zeroblob(4000), 0)", (number,))
        for side in ("", "-journal", ".lock"):
            shutil.copy(f"{made}{side}", f"{killed}{side}")
    with closing(read_only(killed)) as db, pytest.raises(sqlite3.OperationalError):
        db.execute("SELECT 1 FROM meta")
    with Spool(killed, MIB) as spool:
        assert (spool.agent, spool.found) == (agent, [])
