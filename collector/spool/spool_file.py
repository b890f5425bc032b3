"""File of the spool: SQLite with a write-ahead log and ``synchronous=FULL``, and its tables.

A transaction is on disk when it ends. Batches and member sets are packed, and every row has a
checksum, because SQLite detects damage of its structure only. When the spool is full, the oldest
batches are dropped.
"""

import sqlite3
import threading
import uuid
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from collector.encoding.bronze_rows import Batch, Row
from collector.errors import SpoolError
from lakehouse import tables

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
BATCHES: Final = (
    "SELECT crc, rows, number, seal, start_us, end_us, count, lost_first, lost_from_us FROM batches"
)
"""Checksum of a batch, its content and its keys."""
_MEMBERS: Final = tables.MEMBERS.name
SetKey = tuple[str, str]
"""Hash of a member set, and its cluster."""


def checksum(what: bytes | str, *keys: object) -> int:
    """Return the CRC-32 of a value and its keys."""
    head = zlib.crc32("/".join(map(str, keys)).encode())
    return zlib.crc32(what.encode() if isinstance(what, str) else what, head)


def advise(path: Path, error: Exception) -> SpoolError:
    """Return an error with its fix in one line."""
    why = (isinstance(error, OSError) and error.strerror) or error  # without number and path
    return SpoolError(f"spool {path}: {why}. Check the disk and the owner of the folder.")


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


class Dropped(NamedTuple):
    """Batches dropped from a full spool. Instants are microseconds.

    Attributes:
        first: Number of the first batch, including batches dropped earlier.
        last: Number of the last batch.
        from_us: First instant of their rows.
        to_us: Last instant of their rows.
        batches: Number of batches.
    """

    first: int
    last: int
    from_us: int
    to_us: int
    batches: int


class UnreadableBatchError(SpoolError):
    """A batch is damaged.

    Args:
        number: Number of the batch.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"batch {number} of the spool is damaged. Check the disk.")
        self.number = number


def put_batch(
    db: sqlite3.Connection, number: int, seal: int, batch: Batch, dropped: Dropped | None = None
) -> None:
    """Write or replace a batch. Its member sets have their own table.

    Args:
        db: The spool, in a transaction.
        number: Number of the batch.
        seal: Number of the first batch with the same windows.
        batch: Its rows.
        dropped: Dropped batches that an event of the batch reports.
    """
    rows = {name: own for name, own in batch.rows.items() if own and name != _MEMBERS}
    packed = zlib.compress(msgspec.msgpack.encode(rows), 6)
    count = sum(map(len, rows.values()))
    lost = (dropped.first, dropped.from_us) if dropped else (None, None)
    keys = (number, seal, batch.start_us, batch.end_us, count, *lost)
    db.execute(
        "INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
        (*keys, packed, checksum(packed, *keys)),
    )
    sets = [(row[0], row[1], msgspec.msgpack.encode(row)) for row in batch.rows.get(_MEMBERS, ())]
    db.executemany(
        "INSERT INTO sets VALUES (?, ?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET"
        " row = excluded.row, crc = excluded.crc, used = MAX(used, excluded.used)",
        [(*key, row, checksum(row, *key), number) for *key, row in sets],
    )


def read_batches(db: sqlite3.Connection) -> Iterator[tuple[int, int, int, Batch]]:
    """Yield the undelivered batches, oldest first: number, packed size, row count and rows.

    Raises:
        UnreadableBatchError: A batch is damaged.
    """
    with closing(db.execute(f"{BATCHES} WHERE refused IS NULL ORDER BY number")) as found:
        for crc, packed, *keys in found:
            number, _, start_us, end_us, count = keys[:5]
            if crc != checksum(packed, *keys):
                raise UnreadableBatchError(number)
            rows = msgspec.msgpack.decode(zlib.decompress(packed), type=dict[str, list[Row]])
            yield number, len(packed), count, Batch(rows, start_us, end_us)


def drop_oldest(db: sqlite3.Connection, newest: int, reached: int, excess: int) -> Dropped | None:
    """Delete the oldest batches until the spool is small enough.

    Batches that may be in the lake are kept. Batches of the same windows are dropped together,
    because the rest would claim that the time of the dropped rows is covered.

    Args:
        db: The spool, in a transaction.
        newest: Number of the first batch of the last windows, which are kept.
        reached: Highest number that may be in the lake.
        excess: Bytes to delete.
    """
    gone = " FROM batches WHERE (seal > ? OR refused IS NOT NULL) AND seal < ?"
    query = f"SELECT seal, SUM(LENGTH(rows)) {gone} GROUP BY seal ORDER BY seal"
    until = 0
    for seal, size in db.execute(query, (reached, newest)).fetchall():
        if excess <= 0:
            break
        until, excess = seal + 1, excess - size
    query = (
        "SELECT MIN(COALESCE(lost_first, number)), MAX(number),"
        f" MIN(COALESCE(lost_from_us, start_us)), MAX(end_us), COUNT(*) {gone}"
    )
    dropped = Dropped(*db.execute(query, (reached, until)).fetchone())
    db.execute(f"DELETE {gone}", (reached, until))
    return dropped if dropped.batches else None
