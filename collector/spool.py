"""The spool: what was read and is not in the lake yet, on this host's disk.

SQLite with a write-ahead log and ``synchronous=FULL``: what a call wrote is on disk on its return.
"""

from __future__ import annotations

import fcntl
import sqlite3
import threading
import uuid
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec

from collector.batches import Batch
from collector.errors import SpoolError
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS journal (number INTEGER PRIMARY KEY AUTOINCREMENT, entry BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), state BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY AUTOINCREMENT, rows BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS sets (hash TEXT PRIMARY KEY);
"""
_VERSION: Final = "1"


class Sealed(NamedTuple):
    """A numbered batch that waits for delivery."""

    number: int
    batch: Batch


class Spool:
    """One agent's spool; a lock on it keeps a second agent out.

    Args:
        path: The SQLite file; it is made where it is missing, readable by its owner alone.
        max_bytes: Size of the waiting batches beyond which the oldest is dropped.

    Attributes:
        reached: The highest batch number that the lake may know of: what was given before it was
            opened, and what was acknowledged since.

    Raises:
        SpoolError: It cannot be read or written, is damaged, or another agent holds it.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._mutex = threading.RLock()
        self.reached = 0
        with self._guarded():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = path.with_suffix(".lock").open("w")
        try:
            self._take_lock()
            self._open()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file and the lock."""
        self._db.close()
        self._lock.close()

    @property
    def agent(self) -> str:
        """The id under which this spool's batches are known in the lake."""
        return self._meta("agent")

    def renew_agent(self) -> None:
        """Take a new id: the lake knows more of the old one than this spool did when it was opened.

        The spool was restored from an old copy. What waited in it then is in the lake.
        """
        with self._transaction() as db:
            agent = uuid.uuid4().hex
            db.execute("UPDATE meta SET value = ? WHERE key = 'agent'", (agent,))
            db.execute("DELETE FROM batches WHERE number <= ?", (self.reached,))
            db.execute("DELETE FROM sets")
        self.reached = self.last_number()

    def bind(self, what: str, value: str) -> None:
        """Remember which lake the member sets went to; of another one none is known."""
        with self._transaction() as db:
            row = db.execute("SELECT value FROM meta WHERE key = ?", (what,)).fetchone()
            if row is None or row[0] != value:
                db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (what, value))
                if row is not None:
                    db.execute("DELETE FROM sets")

    def append(self, entry: bytes) -> None:
        """Keep one journal entry."""
        with self._transaction() as db:
            db.execute("INSERT INTO journal (entry) VALUES (?)", (entry,))

    def seal(self, batch: Batch, state: bytes) -> list[int]:
        """Keep a batch and the encoder's state after it; the journal begins anew.

        Returns:
            Numbers of the oldest batches that had to be dropped to stay below ``max_bytes``.
        """
        with self._transaction() as db:
            if batch:
                db.execute("INSERT INTO batches (rows) VALUES (?)", (_pack(batch),))
                sets = [(row[0],) for row in batch.rows[tables.MEMBERS.name]]
                db.executemany("INSERT OR IGNORE INTO sets VALUES (?)", sets)
            db.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?)", (state,))
            db.execute("DELETE FROM journal")
            return self._drop_excess(db)

    def recover(self) -> tuple[bytes | None, list[bytes]]:
        """The encoder's last state, if any, and the journal since then."""
        with self._guarded():
            state = self._db.execute("SELECT state FROM snapshot").fetchone()
            entries = self._db.execute("SELECT entry FROM journal ORDER BY number").fetchall()
        return (state[0] if state else None), [entry for (entry,) in entries]

    def known_sets(self) -> set[str]:
        """Hashes of the member sets that are in the lake or on their way."""
        with self._guarded():
            return {key for (key,) in self._db.execute("SELECT hash FROM sets")}

    def oldest(self) -> Sealed | None:
        """The batch to deliver next."""
        with self._guarded():
            row = self._db.execute(
                "SELECT number, rows FROM batches ORDER BY number LIMIT 1"
            ).fetchone()
        if row is None:
            return None
        return Sealed(row[0], _unpack(row[1]))

    def oldest_number(self) -> int | None:
        """The number of the batch to deliver next, without unpacking it."""
        with self._guarded():
            row = self._db.execute("SELECT MIN(number) FROM batches").fetchone()
        return int(row[0]) if row[0] is not None else None

    def acknowledge(self, number: int) -> None:
        """The batch is in the lake; forget it."""
        with self._transaction() as db:
            db.execute("DELETE FROM batches WHERE number = ?", (number,))
        self.reached = max(self.reached, number)

    def last_number(self) -> int:
        """The highest batch number ever given, 0 before the first."""
        with self._guarded():
            row = self._db.execute(
                "SELECT seq FROM sqlite_sequence WHERE name = 'batches'"
            ).fetchone()
        return int(row[0]) if row else 0

    def depth(self) -> tuple[int, int]:
        """Waiting batches and their size in bytes."""
        with self._guarded():
            count, size = self._db.execute(
                "SELECT COUNT(*), COALESCE(SUM(LENGTH(rows)), 0) FROM batches"
            ).fetchone()
        return count, size

    def _drop_excess(self, db: sqlite3.Connection) -> list[int]:
        sizes = db.execute("SELECT number, LENGTH(rows) FROM batches ORDER BY number").fetchall()
        excess = sum(size for _, size in sizes) - self._max_bytes
        dropped: list[int] = []
        for number, size in sizes[:-1]:
            if excess > 0:
                dropped.append(number)
                excess -= size
        if dropped:
            self._save_sets(db, dropped, sizes[len(dropped)][0])
        return dropped

    def _save_sets(self, db: sqlite3.Connection, dropped: list[int], heir: int) -> None:
        """Drop batches, but let the next one carry their member sets: others refer to them."""
        names = tables.MEMBERS.name
        next_batch = self._read(db, heir)
        sets = [row for number in dropped for row in self._read(db, number).rows.get(names, [])]
        next_batch.rows[names] = [*sets, *next_batch.rows.get(names, [])]
        db.execute("UPDATE batches SET rows = ? WHERE number = ?", (_pack(next_batch), heir))
        db.executemany("DELETE FROM batches WHERE number = ?", [(number,) for number in dropped])

    def _read(self, db: sqlite3.Connection, number: int) -> Batch:
        row = db.execute("SELECT rows FROM batches WHERE number = ?", (number,)).fetchone()
        return _unpack(row[0])

    def _open(self) -> None:
        with self._guarded():
            self._path.touch(mode=0o600)
            self._db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            with self._guarded():
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=FULL")
                sound = self._db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
                self._db.executescript(_SCHEMA)
            self._meet(sound=sound)
        except BaseException:
            self._db.close()
            raise

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SpoolError(
                f"spool {self._path} is in use by another agent; give each its own spool.path"
            ) from error

    def _meet(self, *, sound: bool) -> None:
        if not sound:
            raise SpoolError(f"spool {self._path} is damaged; move it away and start again")
        with self._transaction() as db:
            db.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (_VERSION,))
            db.execute("INSERT OR IGNORE INTO meta VALUES ('agent', ?)", (uuid.uuid4().hex,))
        self.reached = self.last_number()
        if self._meta("version") != _VERSION:
            raise SpoolError(
                f"spool {self._path} is of another version of jmxlake-agent; "
                "let that version deliver it, or move it away"
            )

    def _meta(self, key: str) -> str:
        with self._guarded():
            return str(
                self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0]
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            with self._mutex:
                yield
        except (sqlite3.Error, OSError) as error:
            raise SpoolError(
                f"spool {self._path}: {error}; check the disk and the folder's owner"
            ) from error


def _pack(batch: Batch) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(batch), 6)


def _unpack(packed: bytes) -> Batch:
    return msgspec.msgpack.decode(zlib.decompress(packed), type=Batch)
