"""The spool: rows that were read and are not in the lake yet, on this host's disk.

A write is on disk when the call returns, or the call raises and nothing has changed.
"""

import errno
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import msgspec

from collector.clock import Clock, SystemClock
from collector.encoding.bronze_rows import Batch, Row
from collector.errors import SpoolError, SpoolInUseError
from collector.model import Event, Series
from collector.spool import batch_tables, integrity, upgrade
from collector.spool.batch_tables import Dropped, SetKey
from collector.spool.spool_file import SpoolFile, advise, checksum, meta, put_meta, read_only
from lakehouse import tables

_KEPT_SETS: Final = 10_000  # batches; about a month of windows of five minutes
_MOST_COPIED: Final = 256 << 20  # bytes of a spool that is tried as a copy
_FREE_PAGES: Final = 1_000  # of 4 KiB, that a file may have free within before it is made smaller


EventsOf = Callable[[Dropped], Iterable[Row]]


class WaitingBatch(NamedTuple):
    """A numbered batch that waits for delivery.

    Attributes:
        number: Higher than that of every batch sealed before.
        batch: Its rows.
    """

    number: int
    batch: Batch


class Depth(NamedTuple):
    """The content of a spool.

    Attributes:
        batches: How many batches.
        bytes: Their packed size.
        refused: How many of them no lake can take.
        oldest_us: The first instant of which a batch waits, None where none waits.
    """

    batches: int
    bytes: int
    refused: int
    oldest_us: int | None


class Spool(AbstractContextManager["Spool"]):
    """One agent's spool; a lock on it keeps a second agent out.

    A file that is damaged is set aside, and a new one made in its place. One that never was a
    spool is refused.

    Args:
        path: The SQLite file; it is made where it is missing, readable by its owner alone.
        max_bytes: Packed size of the batches beyond which the oldest are dropped.
        clock: Gives the instant at which damage is found.

    Attributes:
        agent: The id under which the lake knows this spool's batches.
        last_number: The highest batch number ever given, 0 before the first.
        reached: The highest batch number that the lake may know of.
        found: Events of faults found when it was opened, until the next seal.

    Raises:
        SpoolError: It cannot be read or written, is of another version, or another agent holds it.
    """

    def __init__(self, path: Path, max_bytes: int, clock: Clock | None = None) -> None:
        self._path = path = path.resolve()  # as SQLite does for what it keeps beside the file
        self.max_bytes = max_bytes
        self._entry = self.last_number = 0
        self.found: list[Event] = []
        with ExitStack() as opened:
            integrity.refuse_other_kinds(path)
            lock = self._take_lock(opened)
            now_us = (clock or SystemClock()).wall_us()
            was_made = os.fstat(lock).st_size > 0
            upgrade.upgrade(path)
            aside = integrity.set_aside_if_damaged(path, now_us, was_made=was_made)
            self._file = SpoolFile(path)
            opened.callback(self._file.close)
            with self._file.writing() as db:
                self._read(db, aside, now_us)
            with suppress(OSError):  # only so that a file that is emptied is known for damaged
                os.pwrite(lock, b"1", 0)
            self._opened = opened.pop_all()

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and release the lock."""
        self._opened.close()

    def begin_anew(self, state: bytes, agent: str) -> None:
        """Take a new id, and delete all waiting batches: the lake has later ones than this spool.

        Args:
            state: The encoder's state from now on.
            agent: The new id.
        """
        with self._file.writing() as db:
            db.execute("DELETE FROM batches")
            db.execute("DELETE FROM sets")
            put_meta(db, agent=agent, reached="0")
            self._put_state(db, state, self.last_number)
        self.agent, self.reached = agent, 0

    def remember(self, key: str, value: str) -> None:
        """Keep a value under a name."""
        with self._file.writing() as db:
            put_meta(db, **{key: value})

    def recall(self, key: str) -> str | None:
        """The value kept last under a name."""
        with self._file.reading() as db:
            return meta(db, key)

    def forget_lake(self) -> None:
        """Accept the next lake, whichever tables it has."""
        with self._file.writing() as db:
            db.execute("DELETE FROM meta WHERE key LIKE 'table %'")

    def know_lake_of(self, path: Path) -> None:
        """Copy the known tables of another spool, which an agent may have open."""
        if not path.is_file():  # to open a FIFO would wait
            return
        with suppress(sqlite3.Error), closing(read_only(path)) as other:
            rows = other.execute("SELECT * FROM meta WHERE key LIKE 'table %'").fetchall()
            with self._file.writing() as db:
                db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", rows)

    def append(self, entries: Sequence[bytes]) -> None:
        """Keep journal entries, all of them or none."""
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
        """Keep batches that belong together, and the encoder's state; the journal starts empty.

        Args:
            batches: They are asked for one after the other.
            state: The encoder's state after them.
            events_of: Makes the event rows of dropped batches; they go into the last batch.

        Returns:
            How many of the oldest batches were dropped to stay below ``max_bytes``.
        """
        first, number, dropped, batch = self.last_number + 1, self.last_number, None, None
        with self._file.writing() as db:
            for number, batch in enumerate(batches, first):
                batch_tables.put_batch(db, number, first, batch)
            if batch is not None:
                excess = self.depth().bytes - self.max_bytes
                dropped = batch_tables.drop_oldest(db, first, self.reached, excess)
                db.execute("DELETE FROM sets WHERE used < ?", (number - _KEPT_SETS,))
            if batch is not None and dropped is not None and events_of is not None:
                batch.rows.setdefault(tables.EVENTS.name, []).extend(events_of(dropped))
                batch_tables.put_batch(db, number, first, batch, dropped)
            self._put_state(db, state, number)
            db.execute("DELETE FROM meta WHERE key = 'damaged'")
        self.last_number, self.found = number, []
        return dropped.batches if dropped else 0

    def recover(self) -> tuple[bytes | None, list[bytes]]:
        """The encoder's last state, if any, and the journal since then."""
        with self._file.reading() as db:
            state = db.execute("SELECT state FROM snapshot").fetchone()
            entries = db.execute("SELECT entry FROM journal ORDER BY number").fetchall()
        return (state[0] if state else None), [entry for (entry,) in entries]

    def waiting(self, limit_bytes: int, limit_rows: int = 1 << 60) -> list[WaitingBatch]:
        """The batches to deliver next, oldest first; at least one if any waits.

        Args:
            limit_bytes: Packed size of all that are returned, beyond the first.
            limit_rows: Their rows, likewise.

        Raises:
            UnreadableBatchError: One of them is damaged.
        """
        found: list[WaitingBatch] = []
        with self._file.reading() as db:
            for number, size, count, batch in batch_tables.read_batches(db):
                limit_bytes, limit_rows = limit_bytes - size, limit_rows - count
                if found and (limit_bytes < 0 or limit_rows < 0):
                    break
                found.append(WaitingBatch(number, batch))
        return found

    def is_empty(self) -> bool:
        """Whether nothing waits for delivery."""
        with self._file.reading() as db:
            query = "SELECT 1 FROM batches WHERE refused IS NULL LIMIT 1"
            return db.execute(query).fetchone() is None

    def reach(self, number: int) -> None:
        """Note that the lake may get the batches up to this one; called before they are written.

        If the lake has a higher number, another agent wrote it: this spool is a copy.
        """
        if number > self.reached:
            self.remember("reached", str(number))
            self.reached = number

    def held(self, number: int) -> int:
        """How many batches up to this one wait; once it is reached, no fewer until acknowledged."""
        with self._file.reading() as db:
            query = "SELECT COUNT(*) FROM batches WHERE number <= ? AND refused IS NULL"
            return int(db.execute(query, (number,)).fetchone()[0])

    def rest_of_seal(self, number: int) -> Dropped:
        """A batch, and the later ones that were sealed with it."""
        with self._file.reading() as db:
            row = db.execute(
                "SELECT MIN(number), MAX(number), MIN(start_us), MAX(end_us), COUNT(*) FROM batches"
                " WHERE number >= ? AND seal = (SELECT seal FROM batches WHERE number = ?)",
                (number, number),
            ).fetchone()
        return Dropped(*row)

    def refuse(self, number: int, why: str) -> None:
        """Set aside a batch that no lake can take, and the rest of its seal.

        It stays until the spool is full.
        """
        last = self.rest_of_seal(number).last
        with self._file.writing() as db:
            query = "UPDATE batches SET refused = ? WHERE number BETWEEN ? AND ?"
            db.execute(query, (why, number, last))

    def acknowledge(
        self, number: int, landed: Mapping[str, str] | None = None, sets: Iterable[SetKey] = ()
    ) -> None:
        """Delete the batches up to this number: they are in the lake.

        Args:
            number: The number of the last.
            landed: Values to remember with that.
            sets: The member sets to which they refer, which are in the lake, too.
        """
        with self._file.writing() as db:
            db.execute("DELETE FROM batches WHERE number <= ? AND refused IS NULL", (number,))
            db.executemany("UPDATE sets SET delivered = 1 WHERE hash = ? AND cluster = ?", sets)
            # Else they pile up; a later batch brings them along again.
            db.execute("UPDATE sets SET row = NULL WHERE used <= ?", (number,))
            reached = max(number, self.reached)
            put_meta(db, reached=str(reached), **(landed or {}))
        self.reached = reached
        with self._file.reading() as db:
            (pages,) = db.execute("PRAGMA freelist_count").fetchone()
            if pages > _FREE_PAGES:
                db.executescript("PRAGMA incremental_vacuum")  # by execute() it is one page

    def sets_to_deliver(self, keys: Collection[SetKey]) -> list[Row]:
        """The rows of those member sets that are not in the lake yet."""
        with self._file.reading() as db:
            query = (
                "SELECT row FROM sets WHERE hash = ? AND cluster = ? AND delivered = 0"
                " AND row IS NOT NULL"
            )
            found = (db.execute(query, key).fetchone() for key in sorted(keys))
            return [msgspec.msgpack.decode(row[0], type=Row) for row in found if row]

    def forget_sets(self) -> None:
        """Deliver all member sets again: the lake is another one, or has lost commits."""
        with self._file.writing() as db:
            db.execute("DELETE FROM sets WHERE row IS NULL")
            db.execute("UPDATE sets SET delivered = 0")

    def depth(self) -> Depth:
        """The content of the spool now."""
        with self._file.reading() as db:
            row = db.execute(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(rows)), 0), COUNT(refused),"
                " MIN(CASE WHEN refused IS NULL THEN start_us END) FROM batches"
            ).fetchone()
        return Depth(*row)

    def _put_state(self, db: sqlite3.Connection, state: bytes, batch: int) -> None:
        """Replace the journal by the state to which it led."""
        row = (self._entry, batch, state, checksum(state, self._entry, batch))
        db.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?)", row)
        db.execute("DELETE FROM journal")

    def _take_lock(self, opened: ExitStack) -> int:
        """Keep a second agent out; for as long as this process lives, whatever becomes of it.

        The file that is locked is empty until there was an agent.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            file = os.open(f"{self._path}.lock", flags, 0o600)
            opened.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            why = f"spool {self._path} is in use by another agent"
            raise SpoolInUseError(f"{why}; give each its own spool.path") from error
        except OSError as error:
            raise advise(self._path, error) from error
        return file

    def _read(self, db: sqlite3.Connection, aside: str | None, now_us: int) -> None:
        """Read id, numbers and events of the file."""
        if aside is not None:
            put_meta(db, damaged=f"{now_us} {aside}")
        self.agent, self.reached = str(meta(db, "agent")), int(meta(db, "reached") or 0)
        at_us, _, name = (meta(db, "damaged") or "").partition(" ")
        self.found = [Event(int(at_us), "spool_damaged", Series(""), None, name)] if at_us else []
        row = db.execute("SELECT entry, batch FROM snapshot").fetchone() or (0, 0)
        (entry,) = db.execute("SELECT MAX(number) FROM journal").fetchone()
        self._entry, self.last_number = max(entry or 0, row[0]), int(row[1])


def try_spool(path: Path) -> str | None:
    """Open a copy of a spool as an agent would, in a folder beside it that is removed again.

    Args:
        path: The spool; it may be missing.

    Returns:
        Finding that does not keep an agent from starting; None: there is none.

    Raises:
        SpoolInUseError: An agent has it open.
        SpoolError: An agent could not open it.
    """
    integrity.refuse_other_kinds(path := path.resolve())
    folder = next(one for one in path.parents if one.exists())
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
                    damaged = any(one.kind == "spool_damaged" for one in opened.found)
            except SpoolError as error:
                raise SpoolError(str(error).replace(str(copy), str(path))) from error
    except OSError as error:
        raise advise(path, error) from error
    if size > _MOST_COPIED:
        return f"its content was not checked: it has {size >> 20} MiB"
    return "it is damaged: the agent sets it aside and starts a new one" if damaged else None


def _files(path: Path) -> list[Path]:
    """The files of a spool without the index of its log, which is made again."""
    names = (path.name, f"{path.name}.lock", f"{path.name}-wal", f"{path.name}-journal")
    return [file for name in names if (file := path.with_name(name)).is_file()]


@contextmanager
def _unlocked(path: Path) -> Iterator[None]:
    """Keep agents out of an existing spool for a moment."""
    lock = Path(f"{path}.lock")
    with lock.open("rb+") if lock.exists() else nullcontext() as file:
        try:
            if file is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and not os.access(path, os.R_OK | os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            yield
        except BlockingIOError as error:
            raise SpoolInUseError(f"spool {path} is in use by another agent") from error
