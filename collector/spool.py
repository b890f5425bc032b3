"""The spool: what was read and is not in the lake yet, on this host's disk.

What a call wrote is on disk on its return, or the call raises and nothing has changed.
"""

from __future__ import annotations

import fcntl
import os
import uuid
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec

from collector import spool_check, spool_rows, spool_upgrade
from collector.batches import Batch, Row
from collector.clock import SystemClock
from collector.errors import SpoolError
from collector.samples import Series
from collector.sealed import Event
from collector.spool_file import VERSION, SpoolFile, advise, checksum, create_tables, meta, put_meta
from collector.spool_rows import Dropped
from lakehouse import tables

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from collector.clock import Clock
    from collector.spool_rows import SetKey

_KEPT_SETS: Final = 10_000  # batches; about a month of windows of five minutes
_FREE_PAGES: Final = 1_000  # of 4 KiB, that a file may have free within before it is made smaller
_EVENTS: Final = tables.EVENTS.name


class WaitingBatch(NamedTuple):
    """A numbered batch that waits for delivery.

    Attributes:
        number: Higher than that of every batch sealed before.
        batch: Its rows.
    """

    number: int
    batch: Batch


class Depth(NamedTuple):
    """What a spool holds.

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


class Spool:
    """One agent's spool; a lock on it keeps a second agent out.

    A file that is damaged is set aside, and a new one made in its place. One that never was a
    spool is refused.

    Args:
        path: The SQLite file; it is made where it is missing, readable by its owner alone.
        max_bytes: Packed size of the batches beyond which the oldest are dropped.
        clock: Gives the instant at which damage is found.

    Attributes:
        agent: The id under which the lake knows this spool's batches.
        reached: The highest batch number that the lake may know of.
        found: What was wrong when it was opened, until something is sealed.

    Raises:
        SpoolError: It cannot be read or written, is of another version, or another agent holds it.
    """

    def __init__(self, path: Path, max_bytes: int, clock: Clock | None = None) -> None:
        self._path = path = path.resolve()  # as SQLite does for what it keeps beside the file
        self._max_bytes = max_bytes
        self.found: list[Event] = []
        self._entry = self._batch = 0
        with ExitStack() as opened:
            spool_check.refuse_foreign(path)
            lock = self._take_lock(opened)
            now_us = (clock or SystemClock()).wall_us()
            was_made = os.fstat(lock).st_size > 0
            aside = spool_check.set_aside_if_damaged(path, now_us, was_made=was_made)
            self._file = SpoolFile(path, lambda db: self._prepare(db, aside, now_us))
            opened.callback(self._file.close)
            with suppress(OSError):  # only so that a file that is emptied is known for damaged
                os.pwrite(lock, b"1", 0)
                spool_upgrade.tidy(path)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file and the lock."""
        self._opened.close()

    def begin_anew(self, state: bytes, agent: str | None = None) -> None:
        """Take a new id, and delete all that waits: the lake knows more than this spool does.

        Args:
            state: The encoder's state from now on.
            agent: The new id; None: any.
        """
        agent = agent or uuid.uuid4().hex
        with self._file.writing() as db:
            db.execute("DELETE FROM batches")
            db.execute("DELETE FROM sets")
            db.execute("DELETE FROM meta WHERE key LIKE 'landed %'")
            put_meta(db, agent=agent, reached="0")
            self._put_state(db, state, self._batch)
        self.agent, self.reached = agent, 0

    def remember(self, key: str, value: str) -> None:
        """Keep a value under a name."""
        with self._file.writing() as db:
            put_meta(db, **{key: value})

    def recall(self, key: str) -> str | None:
        """What was kept last under a name."""
        with self._file.reading() as db:
            return meta(db, key)

    def check_writable(self) -> None:
        """See whether anything can be written.

        Raises:
            SpoolError: Nothing can.
        """
        self.remember("agent", self.agent)

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
        self,
        batches: Iterable[Batch],
        state: bytes,
        event_of: Callable[[Dropped], Row] | None = None,
    ) -> int:
        """Keep batches that belong together, and the encoder's state; the journal begins anew.

        Args:
            batches: They are asked for one after the other.
            state: The encoder's state after them.
            event_of: Makes the event of what had to be dropped; the last batch brings it.

        Returns:
            How many of the oldest batches were dropped to stay below ``max_bytes``.
        """
        first, number, dropped, batch = self._batch + 1, self._batch, None, None
        with self._file.writing() as db:
            for number, batch in enumerate(batches, first):
                spool_rows.put_batch(db, number, first, batch)
            if batch is not None:
                excess = self._depth(db).bytes - self._max_bytes
                dropped = spool_rows.drop_oldest(db, first, self.reached, excess)
                db.execute("DELETE FROM sets WHERE used < ?", (number - _KEPT_SETS,))
            if batch is not None and dropped is not None and event_of is not None:
                batch.rows.setdefault(_EVENTS, []).append(event_of(dropped))
                spool_rows.put_batch(db, number, first, batch, dropped)
            self._put_state(db, state, number)
            db.execute("DELETE FROM findings")
        self._batch, self.found = number, []
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
            for number, size, count, batch in spool_rows.read_batches(db):
                limit_bytes, limit_rows = limit_bytes - size, limit_rows - count
                if found and (limit_bytes < 0 or limit_rows < 0):
                    break
                found.append(WaitingBatch(number, batch))
        return found

    def is_empty(self) -> bool:
        """Whether nothing waits for delivery."""
        return self.depth().oldest_us is None

    def reach(self, number: int) -> None:
        """From now on the lake may know of the batches up to this one; before they are written.

        Should the lake know of a higher number, another wrote it: this spool is a copy.
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
        """A batch, and what was sealed with it and comes later."""
        with self._file.reading() as db:
            row = db.execute(
                "SELECT MIN(number), MAX(number), MIN(start_us), MAX(end_us), COUNT(*) FROM batches"
                " WHERE number >= ? AND seal = (SELECT seal FROM batches WHERE number = ?)",
                (number, number),
            ).fetchone()
        return Dropped(*row)

    def refuse(self, number: int, why: str) -> None:
        """Put a batch aside that no lake can take, and the rest of its seal.

        It stays until there is no room for it.
        """
        last = self.rest_of_seal(number).last
        with self._file.writing() as db:
            query = "UPDATE batches SET refused = ? WHERE number BETWEEN ? AND ?"
            db.execute(query, (why, number, last))

    def acknowledge(
        self, number: int, landed: Mapping[str, str] | None = None, sets: Iterable[SetKey] = ()
    ) -> None:
        """The batches up to this number are in the lake; forget them.

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
        """The lake has no member set any longer: it is another one, or has lost commits."""
        with self._file.writing() as db:
            db.execute("DELETE FROM sets WHERE row IS NULL")
            db.execute("UPDATE sets SET delivered = 0")

    def last_number(self) -> int:
        """The highest batch number ever given, 0 before the first."""
        return self._batch

    def depth(self) -> Depth:
        """What there is."""
        with self._file.reading() as db:
            return self._depth(db)

    def _depth(self, db: sqlite3.Connection) -> Depth:
        row = db.execute(
            "SELECT COUNT(*), COALESCE(SUM(LENGTH(rows)), 0), COUNT(refused),"
            " MIN(CASE WHEN refused IS NULL THEN start_us END) FROM batches"
        ).fetchone()
        return Depth(*row)

    def _put_state(self, db: sqlite3.Connection, state: bytes, batch: int) -> None:
        """Replace the journal by the state to which it led."""
        crc = checksum(state, self._entry, batch)
        row = (self._entry, batch, state, crc)
        db.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?)", row)
        db.execute("DELETE FROM journal")

    def _take_lock(self, opened: ExitStack) -> int:
        """Keep a second agent out; for as long as this process lives, whatever becomes of it."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            file = os.open(spool_check.lock_of(self._path), flags, 0o600)
            opened.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SpoolError(
                f"spool {self._path} is in use by another agent; give each its own spool.path"
            ) from error
        except OSError as error:
            raise advise(self._path, error) from error
        return file

    def _prepare(self, db: sqlite3.Connection, aside: str | None, now_us: int) -> None:
        """Make it a spool of this version, and learn what it holds."""
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        if "meta" in names and meta(db, "version") == spool_upgrade.FORMER:
            spool_upgrade.upgrade(db, now_us)
        create_tables(db)
        if meta(db, "version") is None:
            put_meta(db, version=VERSION, agent=uuid.uuid4().hex, reached="0")
        if aside is not None:
            finding = ("spool_damaged", None, aside, now_us)
            db.execute("INSERT INTO findings VALUES (?, ?, ?, ?)", finding)
        self.agent, self.reached = str(meta(db, "agent")), int(meta(db, "reached") or 0)
        query = "SELECT at, kind, old, new FROM findings"
        self.found = [
            Event(at, kind, Series(""), old, new) for at, kind, old, new in db.execute(query)
        ]
        row = db.execute("SELECT entry, batch FROM snapshot").fetchone() or (0, 0)
        (entry,) = db.execute("SELECT MAX(number) FROM journal").fetchone()
        self._entry, self._batch = max(entry or 0, row[0]), int(row[1])
