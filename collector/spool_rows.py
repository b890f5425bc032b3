"""What lies in the spool's tables: every value with its checksum, batches packed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from collector.batches import Batch
from collector.bequest import inherit
from collector.spool_file import checksum
from collector.spool_witness import Reached
from lakehouse import tables

if TYPE_CHECKING:
    import sqlite3

    from collector.spool_sets import KnownSets


class Waiting(NamedTuple):
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


def written(db: sqlite3.Connection) -> Reached:
    """The last numbers given, also to what is no longer there."""
    row = db.execute("SELECT entry, batch FROM snapshot").fetchone() or (0, 0)
    (entry,) = db.execute("SELECT MAX(number) FROM journal").fetchone()
    (batch,) = db.execute("SELECT MAX(number) FROM batches").fetchone()
    return Reached(max(entry or 0, row[0]), max(batch or 0, row[1]))


def add_entry(db: sqlite3.Connection, number: int, entry: bytes) -> None:
    """Add to the journal."""
    db.execute("INSERT INTO journal VALUES (?, ?, ?)", (number, entry, checksum(entry, number)))


def begin_journal(db: sqlite3.Connection, state: bytes, reached: Reached) -> None:
    """Replace the journal by the state to which it led; what was given is remembered."""
    crc = checksum(state, *reached)
    db.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?)", (*reached, state, crc))
    db.execute("DELETE FROM journal")


def waiting(db: sqlite3.Connection) -> list[Waiting]:
    """All batches, oldest first."""
    found = db.execute("SELECT number, agent, LENGTH(rows) FROM batches ORDER BY number")
    return [Waiting(*row) for row in found]


def batch(db: sqlite3.Connection, number: int) -> Batch:
    """One that waits."""
    return unpack(db.execute("SELECT rows FROM batches WHERE number = ?", (number,)).fetchone()[0])


def put_batch(db: sqlite3.Connection, number: int, agent: str, rows: Batch) -> None:
    """Keep one, or replace it."""
    packed = zlib.compress(msgspec.msgpack.encode(rows), 6)
    crc = checksum(packed, number, agent)
    db.execute("INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?)", (number, agent, packed, crc))


def unpack(packed: bytes) -> Batch:
    """A batch as it was put."""
    return msgspec.msgpack.decode(zlib.decompress(packed), type=Batch)


def drop_excess(
    db: sqlite3.Connection, max_bytes: int, sets: KnownSets, used: dict[str, int]
) -> tuple[list[int], set[str]]:
    """Leave to the oldest batch that may stay what those before it leave; the newest always stays.

    Args:
        db: The spool.
        max_bytes: How much may stay.
        sets: The known sets, before the newest batch.
        used: What the newest batch refers to.

    Returns:
        Numbers of those that went, and the sets that went with them, since nothing refers to them.
    """
    found = waiting(db)
    excess = sum(one.bytes for one in found) - max_bytes
    dropped: list[tuple[int, Batch]] = []
    for one in found[:-1]:
        if excess > 0:
            dropped.append((one.number, batch(db, one.number)))
            excess -= one.bytes
    if not dropped:
        return [], set()
    heir = found[len(dropped)]
    needed = sets.needed_from(heir.number, used)
    put_batch(db, heir.number, heir.agent, inherit(batch(db, heir.number), dropped, needed))
    db.execute("DELETE FROM batches WHERE number < ?", (heir.number,))
    members = tables.MEMBERS.name
    gone = {row[0] for _, one in dropped for row in one.rows.get(members, ())} - needed
    return [number for number, _ in dropped], gone
