"""Batch and member-set tables of the spool. Every row is packed and has a checksum.

When the spool is full, the oldest batches are dropped.
"""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import Final, NamedTuple

import msgspec

from collector.encoding.bronze_rows import Batch, Row
from collector.errors import SpoolError
from collector.spool.spool_file import checksum
from lakehouse import tables

BATCHES: Final = (
    "SELECT crc, rows, number, seal, start_us, end_us, count, lost_first, lost_from_us FROM batches"
)
"""Checksum of a batch, its content and its keys."""
_MEMBERS: Final = tables.MEMBERS.name
SetKey = tuple[str, str]
"""Hash of a member set, and its cluster."""


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
