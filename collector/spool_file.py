"""The spool's file: SQLite with a write-ahead log and ``synchronous=FULL``.

What a transaction wrote is on disk when it ends. Every row that matters bears a checksum, since
SQLite itself notices damage to its structure only.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from collector.errors import SpoolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION: Final = "2"
JOURNAL: Final = "-journal"
SIDES: Final = ("-wal", "-shm", JOURNAL)
"""What SQLite keeps beside the file; a journal only beside one that is being made."""

_SCHEMA: Final = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS meta
    (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS journal
    (number INTEGER PRIMARY KEY, entry BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS snapshot
    (one INTEGER PRIMARY KEY CHECK (one = 1), entry INTEGER NOT NULL, batch INTEGER NOT NULL,
     state BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS batches
    (number INTEGER PRIMARY KEY, agent TEXT NOT NULL, rows BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS sets (hash TEXT PRIMARY KEY, batch INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS members (hash TEXT PRIMARY KEY, row BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS findings (kind TEXT NOT NULL, old TEXT, new TEXT, at INTEGER NOT NULL);
COMMIT;
"""
_BUSY_SECONDS: Final = 10.0  # a backup tool may hold the file for a moment
_WAL_BYTES: Final = 16 << 20  # what is left of the log after a reader had made it grow


def checksum(what: bytes | str, *keys: str | int) -> int:
    """CRC-32 of a value and of the keys under which it is kept."""
    head = zlib.crc32("/".join(map(str, keys)).encode())
    return zlib.crc32(what.encode() if isinstance(what, str) else what, head)


def advise(path: Path, error: Exception) -> SpoolError:
    """What went wrong, in one line, and what to do."""
    return SpoolError(f"spool {path}: {error}; check the disk and the folder's owner")


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, nor moves the log into the file when it is closed."""
    uri = f"file:{quote(str(path))}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=_BUSY_SECONDS)


class SpoolFile:
    """An open spool; one connection, used by one thread at a time.

    Args:
        path: The file; it is made where it is missing, readable by its owner alone.
        log: Whether to write to a log beside it, as is cheaper; else all is in the file itself
            at the end of a transaction.

    Raises:
        SpoolError: It cannot be opened or written.
    """

    def __init__(self, path: Path, *, log: bool = True) -> None:
        self._path = path
        self._mutex = threading.RLock()
        with self.reading():
            path.touch(mode=0o600)
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
            )
        try:
            with self.reading() as db:
                db.execute(f"PRAGMA journal_mode={'WAL' if log else 'DELETE'}")
                db.execute("PRAGMA synchronous=FULL")
                db.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")
                db.executescript(_SCHEMA)
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Let go of it."""
        with self._mutex:
            self._db.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Alone with the connection.

        Raises:
            SpoolError: What was done with it went wrong.
        """
        try:
            with self._mutex:
                yield self._db if hasattr(self, "_db") else None  # type: ignore[misc]
        except (sqlite3.Error, OSError) as error:
            raise advise(self._path, error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on disk afterwards, or nothing is.

        Raises:
            SpoolError: It could not be written.
        """
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # a full disk makes SQLite roll back by itself
                    db.execute("ROLLBACK")
                raise
