"""Spool: disk buffer of scraped rows that are not in the lake.

A write is on disk when the call returns. If the call raises, the spool has not changed.
"""

import errno
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec

from collector.encoding.bronze_rows import Batch, Row
from collector.errors import SpoolError, SpoolInUseError
from collector.model import Clock, Event, Series, SystemClock
from collector.spool import integrity, spool_file
from collector.spool.spool_file import Dropped, SetKey, advise, checksum, meta, put_meta
from lakehouse import tables

_KEPT_SETS: Final = 10_000  # batches, about a month of windows of five minutes
_MOST_COPIED: Final = 256 << 20  # bytes of the largest spool that is copied for a check
_FREE_PAGES: Final = 1_000  # of 4 KiB, above which the file shrinks


EventsOf = Callable[[Dropped], Iterable[Row]]


class WaitingBatch(NamedTuple):
    """An undelivered batch.

    Attributes:
        number: Number, higher than all earlier numbers.
        batch: Its rows.
    """

    number: int
    batch: Batch


class Depth(NamedTuple):
    """Size of a spool.

    Attributes:
        batches: Number of batches.
        bytes: Packed size of the batches.
        refused: Number of batches that no lake accepts.
        oldest_us: First instant of the undelivered rows. None if all rows are delivered.
    """

    batches: int
    bytes: int
    refused: int
    oldest_us: int | None


class Spool(AbstractContextManager["Spool"]):
    """Spool of one agent. A lock prevents a second agent from using it.

    A damaged file is renamed and replaced by a new spool. A file of another program is refused.

    Args:
        path: The SQLite file. A new file is readable only by its owner.
        max_bytes: Maximum packed size of the batches. The oldest batches above it are dropped.
        clock: Clock for the time of damage.

    Attributes:
        agent: ID of this spool's batches in the lake.
        last_number: Highest batch number. 0 before the first batch.
        reached: Highest batch number that may be in the lake.
        found: Events of faults at the opening, until windows are closed.

    Raises:
        SpoolError: The file is unreadable, not writable, of another version, or in use.
    """

    def __init__(self, path: Path, max_bytes: int, clock: Clock | None = None) -> None:
        self._path = path = path.resolve()  # as SQLite does for the names of its other files
        self.max_bytes = max_bytes
        self._entry = self.last_number = 0
        self.found: list[Event] = []
        with ExitStack() as opened:
            integrity.refuse_other_kinds(path)
            lock = self._take_lock(opened)
            now_us = (clock or SystemClock()).wall_us()
            was_made = os.fstat(lock).st_size > 0
            integrity.upgrade(path)
            aside = integrity.set_aside_if_damaged(path, now_us, was_made=was_made)
            self._file = spool_file.SpoolFile(path)
            opened.callback(self._file.close)
            with self._file.writing() as db:
                self._read(db, aside, now_us)
            with suppress(OSError):  # so that an emptied spool is detected as damaged
                os.pwrite(lock, b"1", 0)
            self._opened = opened.pop_all()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and release the lock."""
        self._opened.close()

    def begin_anew(self, state: bytes, agent: str) -> None:
        """Set a new ID and delete all batches, because the lake has later batches than this spool.

        Args:
            state: New snapshot of the encoders.
            agent: The new ID.
        """
        with self._file.writing() as db:
            db.execute("DELETE FROM batches")
            db.execute("DELETE FROM sets")
            put_meta(db, agent=agent, reached="0")
            self._put_state(db, state, self.last_number)
        self.agent, self.reached = agent, 0

    def remember(self, key: str, value: str) -> None:
        """Store a value by key."""
        with self._file.writing() as db:
            put_meta(db, **{key: value})

    def recall(self, key: str) -> str | None:
        """Return the stored value of a key."""
        with self._file.reading() as db:
            return meta(db, key)

    def forget_lake(self) -> None:
        """Delete the stored tables of the lake, so that another lake is accepted."""
        with self._file.writing() as db:
            db.execute("DELETE FROM meta WHERE key LIKE 'table %'")

    def know_lake_of(self, path: Path) -> None:
        """Copy the known tables of another spool. An agent may be using it."""
        if not path.is_file():  # opening a FIFO would block
            return
        with suppress(sqlite3.Error), closing(spool_file.read_only(path)) as other:
            rows = other.execute("SELECT * FROM meta WHERE key LIKE 'table %'").fetchall()
            with self._file.writing() as db:
                db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", rows)

    def append(self, entries: Sequence[bytes]) -> None:
        """Store journal entries in one transaction."""
        numbered = list(enumerate(entries, self._entry + 1))
        with self._file.writing() as db:
            db.executemany(
                "INSERT INTO journal VALUES (?, ?, ?)",
                [(number, entry, checksum(entry, number)) for number, entry in numbered],
            )
        self._entry += len(numbered)

    def seal(
        self, batches: Iterable[Batch], state: bytes, events_of: EventsOf | None = None
    ) -> int:
        """Store batches of the same windows and a snapshot. The journal is empty afterwards.

        Args:
            batches: The batches, consumed one by one.
            state: Snapshot of the encoders after them.
            events_of: Returns the event rows of dropped batches, which the last batch gets.

        Returns:
            Number of batches dropped to stay below ``max_bytes``.
        """
        first, number, dropped, batch = self.last_number + 1, self.last_number, None, None
        with self._file.writing() as db:
            for number, batch in enumerate(batches, first):
                spool_file.put_batch(db, number, first, batch)
            if batch is not None:
                excess = self.depth().bytes - self.max_bytes
                dropped = spool_file.drop_oldest(db, first, self.reached, excess)
                db.execute("DELETE FROM sets WHERE used < ?", (number - _KEPT_SETS,))
            if batch is not None and dropped is not None and events_of is not None:
                batch.rows.setdefault(tables.EVENTS.name, []).extend(events_of(dropped))
                spool_file.put_batch(db, number, first, batch, dropped)
            self._put_state(db, state, number)
            db.execute("DELETE FROM meta WHERE key = 'damaged'")
        self.last_number, self.found = number, []
        return dropped.batches if dropped else 0

    def recover(self) -> tuple[bytes | None, list[bytes]]:
        """Return the last snapshot of the encoders, if any, and the journal since then."""
        with self._file.reading() as db:
            state = db.execute("SELECT state FROM snapshot").fetchone()
            entries = db.execute("SELECT entry FROM journal ORDER BY number").fetchall()
        return (state[0] if state else None), [entry for (entry,) in entries]

    def waiting(self, limit_bytes: int, limit_rows: int = 1 << 60) -> list[WaitingBatch]:
        """Return the batches to deliver next, oldest first; at least one if there is any.

        Args:
            limit_bytes: Maximum packed size of the batches after the first.
            limit_rows: Maximum rows of the batches after the first.

        Raises:
            UnreadableBatchError: A batch is damaged.
        """
        found: list[WaitingBatch] = []
        with self._file.reading() as db:
            for number, size, count, batch in spool_file.read_batches(db):
                limit_bytes, limit_rows = limit_bytes - size, limit_rows - count
                if found and (limit_bytes < 0 or limit_rows < 0):
                    break
                found.append(WaitingBatch(number, batch))
        return found

    def is_empty(self) -> bool:
        """Return True if all batches are delivered."""
        with self._file.reading() as db:
            query = "SELECT 1 FROM batches WHERE refused IS NULL LIMIT 1"
            return db.execute(query).fetchone() is None

    def reach(self, number: int) -> None:
        """Record that the batches up to a number may reach the lake. Call it before the commit.

        A higher number in the lake proves that another agent has a copy of this spool.
        """
        if number > self.reached:
            self.remember("reached", str(number))
            self.reached = number

    def held(self, number: int) -> int:
        """Return the number of undelivered batches up to a batch."""
        with self._file.reading() as db:
            query = "SELECT COUNT(*) FROM batches WHERE number <= ? AND refused IS NULL"
            return int(db.execute(query, (number,)).fetchone()[0])

    def rest_of_seal(self, number: int) -> Dropped:
        """Return a batch and the later batches of the same windows."""
        with self._file.reading() as db:
            row = db.execute(
                "SELECT MIN(number), MAX(number), MIN(start_us), MAX(end_us), COUNT(*) FROM batches"
                " WHERE number >= ? AND seal = (SELECT seal FROM batches WHERE number = ?)",
                (number, number),
            ).fetchone()
        return Dropped(*row)

    def refuse(self, number: int, why: str) -> None:
        """Mark a batch that no lake accepts, and the later batches of the same windows.

        They are kept until the spool is full.
        """
        last = self.rest_of_seal(number).last
        with self._file.writing() as db:
            query = "UPDATE batches SET refused = ? WHERE number BETWEEN ? AND ?"
            db.execute(query, (why, number, last))

    def acknowledge(
        self, number: int, landed: Mapping[str, str] | None = None, sets: Iterable[SetKey] = ()
    ) -> None:
        """Delete the batches up to a number, because they are in the lake.

        Args:
            number: Number of the last batch.
            landed: Values to store in the same transaction.
            sets: Member sets of the batches, which are in the lake.
        """
        with self._file.writing() as db:
            db.execute("DELETE FROM batches WHERE number <= ? AND refused IS NULL", (number,))
            db.executemany("UPDATE sets SET delivered = 1 WHERE hash = ? AND cluster = ?", sets)
            # Otherwise they accumulate. A later batch stores them again.
            db.execute("UPDATE sets SET row = NULL WHERE used <= ?", (number,))
            reached = max(number, self.reached)
            put_meta(db, reached=str(reached), **(landed or {}))
        self.reached = reached
        with self._file.reading() as db:
            (pages,) = db.execute("PRAGMA freelist_count").fetchone()
            if pages > _FREE_PAGES:
                db.executescript("PRAGMA incremental_vacuum")  # execute() frees one page only

    def sets_to_deliver(self, keys: Collection[SetKey]) -> list[Row]:
        """Return the rows of the member sets that are not in the lake."""
        with self._file.reading() as db:
            query = (
                "SELECT row FROM sets WHERE hash = ? AND cluster = ? AND delivered = 0"
                " AND row IS NOT NULL"
            )
            found = (db.execute(query, key).fetchone() for key in sorted(keys))
            return [msgspec.msgpack.decode(row[0], type=Row) for row in found if row]

    def forget_sets(self) -> None:
        """Mark all member sets as undelivered, because the lake changed or lost commits."""
        with self._file.writing() as db:
            db.execute("DELETE FROM sets WHERE row IS NULL")
            db.execute("UPDATE sets SET delivered = 0")

    def depth(self) -> Depth:
        """Return the current size of the spool."""
        with self._file.reading() as db:
            row = db.execute(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(rows)), 0), COUNT(refused),"
                " MIN(CASE WHEN refused IS NULL THEN start_us END) FROM batches"
            ).fetchone()
        return Depth(*row)

    def _put_state(self, db: sqlite3.Connection, state: bytes, batch: int) -> None:
        """Replace the journal by a snapshot."""
        row = (self._entry, batch, state, checksum(state, self._entry, batch))
        db.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?)", row)
        db.execute("DELETE FROM journal")

    def _take_lock(self, opened: ExitStack) -> int:
        """Lock the spool until the process ends, in any way.

        The lock file is empty until the first agent has used the spool.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            file = os.open(f"{self._path}.lock", flags, 0o600)
            opened.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            why = f"spool {self._path} is in use by another agent"
            raise SpoolInUseError(f"{why}. Set another spool.path for each agent.") from error
        except OSError as error:
            raise advise(self._path, error) from error
        return file

    def _read(self, db: sqlite3.Connection, aside: str | None, now_us: int) -> None:
        """Read ID, numbers and events of the file."""
        if aside is not None:
            put_meta(db, damaged=f"{now_us} {aside}")
        self.agent, self.reached = str(meta(db, "agent")), int(meta(db, "reached") or 0)
        at_us, _, name = (meta(db, "damaged") or "").partition(" ")
        self.found = [Event(int(at_us), "spool_damaged", Series(""), None, name)] if at_us else []
        row = db.execute("SELECT entry, batch FROM snapshot").fetchone() or (0, 0)
        (entry,) = db.execute("SELECT MAX(number) FROM journal").fetchone()
        self._entry, self.last_number = max(entry or 0, row[0]), int(row[1])


def try_spool(path: Path) -> str | None:
    """Open a copy of a spool as an agent does, in a temporary folder next to it.

    Args:
        path: The spool. It need not exist.

    Returns:
        Finding that does not prevent the start of an agent. None if there is none.

    Raises:
        SpoolInUseError: An agent has it open.
        SpoolError: An agent could not open it.
    """
    integrity.refuse_other_kinds(path := path.resolve())
    folder = next(parent for parent in path.parents if parent.exists())
    if not folder.is_dir():
        raise advise(path, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    size = sum(file.stat().st_size for file in _files(path))
    try:
        with TemporaryDirectory(prefix=".jmxlake-check-", dir=folder) as trial, _unlocked(path):
            copy = Path(trial, path.name)
            for file in _files(path) if size <= _MOST_COPIED else ():
                shutil.copyfile(file, copy.with_name(file.name))
            try:
                with Spool(copy, 1) as opened:
                    damaged = any(event.kind == "spool_damaged" for event in opened.found)
            except SpoolError as error:
                raise SpoolError(str(error).replace(str(copy), str(path))) from error
    except OSError as error:
        raise advise(path, error) from error
    if size > _MOST_COPIED:
        return f"content not checked: {size >> 20} MiB are too large for a check"
    return "damaged: the agent will rename it and start an empty spool" if damaged else None


def _files(path: Path) -> list[Path]:
    """Return the files of a spool without the index of its log, which SQLite recreates."""
    names = (path.name, f"{path.name}.lock", f"{path.name}-wal", f"{path.name}-journal")
    return [file for name in names if (file := path.with_name(name)).is_file()]


@contextmanager
def _unlocked(path: Path) -> Iterator[None]:
    """Lock an existing spool for a moment."""
    lock = Path(f"{path}.lock")
    with ExitStack() as opened:
        file = opened.enter_context(lock.open("rb+")) if lock.exists() else None
        try:
            if file is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and not os.access(path, os.R_OK | os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            yield
        except BlockingIOError as error:
            raise SpoolInUseError(f"spool {path} is in use by another agent") from error
