"""The spool's file: SQLite with a write-ahead log and ``synchronous=FULL``.

A transaction is on disk when it ends. Every row that matters has a checksum, since
SQLite itself notices damage to its structure only.
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
"""Suffixes of SQLite's files beside the spool; the journal only while a spool is created."""

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
_WAL_BYTES: Final = 16 << 20  # what is left of the log after a reader had made it grow


def checksum(what: bytes | str, *keys: object) -> int:
    """CRC-32 of a value and of the keys under which it is kept."""
    head = zlib.crc32("/".join(map(str, keys)).encode())
    return zlib.crc32(what.encode() if isinstance(what, str) else what, head)


def advise(path: Path, error: Exception) -> SpoolError:
    """The error in one line, and what to do."""
    return SpoolError(f"spool {path}: {error}; check the disk and the folder's owner")


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, nor moves the log into the file when it is closed."""
    uri = f"file:{quote(str(path))}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_SECONDS)


def meta(db: sqlite3.Connection, key: str) -> str | None:
    """A value, None where there is none of that name."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else None


def put_meta(db: sqlite3.Connection, **values: str) -> None:
    """Keep values under their names."""
    rows = [(key, value, checksum(value, key)) for key, value in values.items()]
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", rows)


def make_tables(db: sqlite3.Connection) -> None:
    """Make the tables that are missing, in a transaction."""
    for statement in _SCHEMA.split(";")[:-1]:
        db.execute(statement)


class SpoolFile:
    """An open spool; one connection, used by one thread at a time.

    Args:
        path: The file; it is made where it is missing, readable by its owner alone.

    Raises:
        SpoolError: It cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.RLock()
        try:
            path.touch(mode=0o600)
            with suppress(PermissionError):  # another user's, who let us write to it
                path.chmod(0o600)
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS
            )
        except (sqlite3.Error, OSError) as error:
            raise advise(path, error) from error
        try:
            with self.reading() as db:
                db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # while there is no table yet
                mode = db.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                if mode != "wal":
                    raise sqlite3.OperationalError(  # noqa: TRY301
                        f"no write-ahead log is possible there (journal_mode {mode}): is it a"
                        " network file system?"
                    )
                db.execute("PRAGMA synchronous=FULL")
                db.execute("PRAGMA cell_size_check=ON")
                db.execute(f"PRAGMA journal_size_limit={_WAL_BYTES}")
            with self.writing() as db:
                make_tables(db)
                if meta(db, "version") is None:
                    put_meta(db, version=VERSION, agent=uuid.uuid4().hex, reached="0")
            with self.reading() as db, suppress(sqlite3.OperationalError):  # a full disk
                # Else all of a new spool, its agent too, hung on the first bytes of the log.
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close it."""
        with self._mutex:
            self._db.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone.

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
