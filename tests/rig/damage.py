"""The spool's files damaged while no agent has them open: torn, flipped, lost, restored, full."""

from __future__ import annotations

import shutil
import signal
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final

from collector.spool.spool_file import checksum, put_batch, read_batches
from lakehouse import tables
from tests.rig.stage import Outcome
from tests.rig.tripwires import Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.rig.rig import Rig
    from tests.rig.stage import Stage

_PAGE: Final = 4_096
_FLIPS: Final = 6


def torn_tail(stage: Stage) -> Outcome:
    """The end of the write-ahead log is cut off, in and between frames, after a kill."""
    outcome = Outcome()
    for number, cut in enumerate((1, 100, _PAGE, 3 * _PAGE + 700, stage.dice.randint(1, 60_000))):
        rig = _killed(stage, f"torn-{number}", outcome)
        wal = _wal(rig)
        with wal.open("r+b") as file:
            file.truncate(max(0, wal.stat().st_size - cut))
        _recovered(rig, outcome, tail_lost=True)
    return outcome


def flipped_log(stage: Stage) -> Outcome:
    """A byte of the write-ahead log is another one: in its header, in a frame's, in a page."""
    outcome = Outcome()
    places = [stage.dice.random() for _ in range(_FLIPS)]
    for number, place in enumerate((0.0, *places)):
        rig = _killed(stage, f"flip-{number}", outcome)
        _flip(_wal(rig), place)
        _recovered(rig, outcome, tail_lost=True)
    return outcome


def flipped_file(stage: Stage) -> Outcome:
    """A byte of the spool itself is another one: in SQLite's header, in any page."""
    outcome = Outcome()
    places = [stage.dice.random() for _ in range(_FLIPS)]
    for number, place in enumerate((0.0, *places)):
        rig = stage.rig(f"flip-{number}")
        outcome.must_end(
            rig.paced(4.0, orderly=False)
        )  # all is in the file: the log was written back
        _flip(rig.spool, place)
        _recovered(rig, outcome)
    outcome.expect("spool_damaged" in outcome.says, "no lake says spool_damaged")
    return outcome


def short_file(stage: Stage) -> Outcome:
    """The spool is cut off in the middle, is empty, or is no database at all."""
    outcome = Outcome()
    for number, left in enumerate((0.5, 0.0, None)):
        rig = stage.rig(f"short-{number}")
        outcome.must_end(rig.paced(4.0, orderly=False))
        if left is None:
            rig.spool.write_bytes(b"this is no database " * 1000)
        else:
            with rig.spool.open("r+b") as file:
                file.truncate(round(rig.spool.stat().st_size * left))
        _recovered(rig, outcome)
    outcome.expect("spool_damaged" in outcome.says, "no lake says spool_damaged")
    return outcome


def restored(stage: Stage) -> Outcome:
    """An old copy of the spool is put in its place: made at rest, or while an agent ran."""
    outcome = Outcome()
    for copied_at in ("rest", "kill"):
        rig = stage.rig(f"restored-{copied_at}")
        if copied_at == "rest":
            outcome.must_end(rig.paced(5.0))
        else:
            outcome.must_end(rig.paced(5.0, step=Step("before spool append", 70)), -signal.SIGKILL)
        copy = _copy(rig.spool.parent, rig.folder / "copy")
        outcome.must_end(rig.paced(5.0))
        _put_back(rig, copy)
        _recovered(rig, outcome)
    outcome.expect("spool_restored" in outcome.says, "no lake says spool_restored")
    return outcome


def restored_while_away(stage: Stage) -> Outcome:
    """The lake is not reached until the restored spool has given as many numbers, and restarted."""
    outcome = Outcome()
    rig = stage.rig()
    outcome.must_end(rig.paced(4.0))
    copy = _copy(rig.spool.parent, rig.folder / "copy")
    outcome.must_end(rig.paced(4.0))
    _put_back(rig, copy)
    with _lake_away(rig):
        for seconds in (9.0, 3.0):
            outcome.must_end(rig.paced(seconds, orderly=False))
    _recovered(rig, outcome)
    outcome.expect("spool_restored" in outcome.says, "no lake says spool_restored")
    return outcome


def full_spool(stage: Stage) -> Outcome:
    """The lake is away for longer than the spool has room: the oldest batches are dropped."""
    outcome = Outcome()
    rig = stage.rig(spool_bytes=40_000)
    outcome.must_end(rig.paced(4.0))
    with _lake_away(rig):
        outcome.must_end(rig.paced(30.0, orderly=False))
    _recovered(rig, outcome)
    outcome.expect("batch_dropped" in outcome.says, "no lake says what was dropped")
    return outcome


def unreadable_journal(stage: Stage) -> Outcome:
    """An entry of the journal, sound by its checksum, makes the encoder raise at each start."""
    outcome = Outcome()
    rig = _killed(stage, "journal", outcome)
    entry = b"no entry of ours"
    with closing(sqlite3.connect(rig.spool)) as db:
        last = "SELECT MAX((SELECT MAX(number) FROM journal), (SELECT entry FROM snapshot))"
        number = db.execute(last).fetchone()[0] + 1
        db.execute("INSERT INTO journal VALUES (?, ?, ?)", (number, entry, checksum(entry, number)))
        db.commit()
    _recovered(rig, outcome)
    outcome.expect("journal_unreadable" in outcome.says, "no lake says journal_unreadable")
    return outcome


def refused_batch(stage: Stage) -> Outcome:
    """A batch that waits has a number that no bigint holds; others wait behind it."""
    outcome = Outcome()
    rig = stage.rig()
    outcome.must_end(rig.paced(4.0))
    with _lake_away(rig):
        outcome.must_end(rig.paced(4.0, orderly=False))
        beans = tables.SCRAPES.positions["beans"]
        with closing(sqlite3.connect(rig.spool, isolation_level=None)) as db:
            waiting = [(one[0], one[-1]) for one in read_batches(db)]
            number, batch = next(one for one in waiting if tables.SCRAPES.name in one[1].rows)
            rows = batch.rows[tables.SCRAPES.name]
            rows[0] = (*rows[0][:beans], 1 << 63, *rows[0][beans + 1 :])
            put_batch(db, number, number, batch)
    _recovered(rig, outcome)
    outcome.expect("batch_refused" in outcome.says, "no lake says batch_refused")
    return outcome


def two_agents(stage: Stage) -> Outcome:
    """A second agent is started on the spool of one that runs."""
    outcome = Outcome()
    rig = stage.rig()
    first = rig.start()
    rig.await_kept(10)
    second = rig.start()
    outcome.must_end(second, 3)
    outcome.expect("is in use by another agent" in second.log(), "the second does not say why")
    outcome.expect(first.alive, "the first was disturbed")
    first.stop()
    outcome.must_end(first)
    outcome.ask(rig)
    return outcome


@contextmanager
def _lake_away(rig: Rig) -> Iterator[None]:
    """Nothing can be read or made where the lake is."""
    away = rig.lake.rename(rig.lake.with_name("away"))
    rig.lake.write_text("no folder: nothing can be read or made here")
    yield
    rig.lake.unlink()
    away.rename(rig.lake)


def _killed(stage: Stage, name: str, outcome: Outcome) -> Rig:
    """A rig whose agent was killed with a window half read, the log not written back."""
    rig = stage.rig(name)
    hit = stage.dice.randint(60, 100)
    outcome.must_end(rig.paced(8.0, step=Step("after spool append", hit)), -signal.SIGKILL)
    return rig


def _recovered(rig: Rig, outcome: Outcome, *, tail_lost: bool = False) -> None:
    outcome.must_end(rig.paced(5.0))
    outcome.ask(rig, tail_lost=tail_lost)


def _wal(rig: Rig) -> Path:
    return rig.spool.with_name(f"{rig.spool.name}-wal")


def _flip(path: Path, place: float) -> None:
    """Another bit in the byte at a place from 0 to 1."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        at = min(round(size * place), size - 1)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


def _copy(folder: Path, copy: Path) -> Path:
    shutil.copytree(folder, copy)
    return copy


def _put_back(rig: Rig, copy: Path) -> None:
    shutil.rmtree(rig.spool.parent)
    shutil.copytree(copy, rig.spool.parent)
