"""File of the spool: SQLite with a write-ahead log and ``synchronous=FULL``.

A transaction is on disk when it ends. Rows have checksums, because SQLite detects damage of its
structure only.
"""

import sqlite3
import threading
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from collector.errors import SpoolError

VERSION: Final = "3"
SIDES: Final = ("-wal", "-shm", "-journal")
"""Suffixes of SQLite's other files. ``-journal`` exists only while a spool is created."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS journal
    (number INTEGER PRIMARY KEY, entry BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS snapshot
    (one INTEGER PRIMARY KEY CHECK (one = 1), entry INTEGER NOT NULL, batch INTEGER NOT NULL,
     state BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS batches
    (number INTEGER PRIMARY KEY, seal INTEGER NOT NULL, start_us INTEGER NOT NULL,
     end_us INTEGER NOT NULL, count INTEGER NOT NULL, lost_first INTEGER, lost_from_us INTEGER,
     rows BLOB NOT NULL, crc INTEGER NOT NULL, refused TEXT);
CREATE TABLE IF NOT EXISTS sets
    (hash TEXT NOT NULL, cluster TEXT NOT NULL, row BLOB, crc INTEGER, used INTEGER NOT NULL,
     delivered INTEGER NOT NULL, PRIMARY KEY (hash, cluster));
"""
BUSY_SECONDS: Final = 10.0  # a backup tool may hold the file for a moment
_WAL_BYTES: Final = 16 << 20  # size of the log after a reader made it grow


def checksum(what: bytes | str, *keys: object) -> int:
    """Return the CRC-32 of a value and its keys."""
    head = zlib.crc32("/".join(map(str, keys)).encode())
    return zlib.crc32(what.encode() if isinstance(what, str) else what, head)


def advise(path: Path, error: Exception) -> SpoolError:
    """Return an error with its fix in one line."""
    return SpoolError(f"spool {path}: {error}. Check the disk and the owner of the folder.")


def read_only(path: Path) -> sqlite3.Connection:
    """Return a read-only connection. Closing it does not move the log into the file."""
    uri = f"file:{quote(str(path))}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS)


def meta(db: sqlite3.Connection, key: str) -> str | None:
    """Return the value of a key. None if it is missing."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else None


def put_meta(db: sqlite3.Connection, **values: str) -> None:
    """Store values by key."""
    rows = [(key, value, checksum(value, key)) for key, value in values.items()]
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", rows)


def make_tables(db: sqlite3.Connection) -> None:
    """Create missing tables, in a transaction."""
    for statement in _SCHEMA.split(";")[:-1]:
        db.execute(statement)


class SpoolFile:
    """An open spool with one connection for one thread at a time.

    Args:
        path: The file. A new file is readable only by its owner.

    Raises:
        SpoolError: The file cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.RLock()
        try:
            path.touch(mode=0o600)
            with suppress(PermissionError):  # the owner is another user
                path.chmod(0o600)
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS
            )
        except (sqlite3.Error, OSError) as error:
            raise advise(path, error) from error
        try:
            with self.reading() as db:
                db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # before the first table
                mode = db.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                if mode != "wal":
                    raise sqlite3.OperationalError(  # noqa: TRY301
                        f"the file system does not support a write-ahead log (journal_mode {mode});"
                        " network file systems do not"
                    )
                db.execute("PRAGMA synchronous=FULL")
                db.execute("PRAGMA cell_size_check=ON")
                db.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")
            with self.writing() as db:
                make_tables(db)
                if meta(db, "version") is None:
                    put_meta(db, version=VERSION, agent=uuid.uuid4().hex, reached="0")
            with self.reading() as db, suppress(sqlite3.OperationalError):  # a full disk
                # Otherwise a new spool and its agent ID would exist only in the log.
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close the file."""
        with self._mutex:
            self._db.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection for this thread only.

        Raises:
            SpoolError: A statement failed.
        """
        try:
            with self._mutex:
                yield self._db
        except (sqlite3.Error, OSError) as error:
            raise advise(self._path, error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection in a transaction, which is on disk afterwards or has no effect.

        Raises:
            SpoolError: The transaction could not be written.
        """
        with self.reading() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:  # SQLite rolls back on a full disk
                    db.execute("ROLLBACK")
                raise
