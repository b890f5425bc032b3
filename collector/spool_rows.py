"""What lies in the spool's tables: every value with its checksum, batches packed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from collector.batches import Batch
from collector.errors import SpoolError
from collector.spool_file import checksum
from collector.spool_witness import Written

if TYPE_CHECKING:
    import sqlite3


class Packed(NamedTuple):
    """A batch that waits, unread."""

    number: int
    agent: str
    bytes: int


def meta(db: sqlite3.Connection, key: str) -> str | None:
    """A value, None where there is none of that name."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else None


def put_meta(db: sqlite3.Connection, key: str, value: str) -> None:
    """Keep a value under a name."""
    crc = checksum(value, key)
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (key, value, crc))


def written(db: sqlite3.Connection) -> Written:
    """The last numbers given, also to what is no longer there."""
    row = db.execute("SELECT entry, batch FROM snapshot").fetchone() or (0, 0)
    (entry,) = db.execute("SELECT MAX(number) FROM journal").fetchone()
    (batch,) = db.execute("SELECT MAX(number) FROM batches").fetchone()
    return Written(max(entry or 0, row[0]), max(batch or 0, row[1]))


def add_entry(db: sqlite3.Connection, number: int, entry: bytes) -> None:
    """Add to the journal."""
    db.execute("INSERT INTO journal VALUES (?, ?, ?)", (number, entry, checksum(entry, number)))


def begin_journal(db: sqlite3.Connection, state: bytes, numbers: Written) -> None:
    """Replace the journal by the state to which it led; what was given is remembered."""
    crc = checksum(state, *numbers)
    db.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?)", (*numbers, state, crc))
    db.execute("DELETE FROM journal")


def waiting(db: sqlite3.Connection) -> list[Packed]:
    """All batches, oldest first."""
    found = db.execute("SELECT number, agent, LENGTH(rows) FROM batches ORDER BY number")
    return [Packed(*row) for row in found]


def batch(db: sqlite3.Connection, number: int) -> Batch:
    """One that waits.

    Raises:
        SpoolError: It is not as it was put.
    """
    row = db.execute("SELECT rows FROM batches WHERE number = ?", (number,)).fetchone()
    return unpack(row[0], number)


def put_batch(db: sqlite3.Connection, number: int, agent: str, rows: Batch) -> None:
    """Keep one, or replace it."""
    packed = zlib.compress(msgspec.msgpack.encode(_stripped(rows)), 6)
    crc = checksum(packed, number, agent)
    db.execute("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?)", (number, agent, packed, crc))


def unpack(packed: bytes, number: int) -> Batch:
    """A batch as it was put.

    Raises:
        SpoolError: It is not.
    """
    try:
        return msgspec.msgpack.decode(zlib.decompress(packed), type=Batch)
    except (zlib.error, msgspec.DecodeError) as error:
        raise SpoolError(
            f"the spool's batch {number} is damaged ({error}); start the agent again: it sets "
            "aside what is damaged and keeps the rest"
        ) from error


def _stripped(rows: Batch) -> Batch:
    return Batch(rows.rows, rows.since, rows.bequest)
