"""The spool's tables of batches and member sets: rows are packed, each with its checksum.

They are written, read for delivery, and when the spool is full the oldest batches are dropped.
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
"""A batch's checksum, what it is of, and under which keys."""
_MEMBERS: Final = tables.MEMBERS.name
SetKey = tuple[str, str]
"""A member set's hash, and the cluster that it is of."""


class Dropped(NamedTuple):
    """Batches that were dropped from a full spool; instants in microseconds.

    Attributes:
        first: The number of the first of them, or of those dropped before it.
        last: The number of the last.
        from_us: From when on their rows were.
        to_us: Until when.
        batches: How many.
    """

    first: int
    last: int
    from_us: int
    to_us: int
    batches: int


class UnreadableBatchError(SpoolError):
    """A batch is not as it was put.

    Args:
        number: Its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"the spool's batch {number} is damaged; look at the disk")
        self.number = number


def put_batch(
    db: sqlite3.Connection, number: int, seal: int, batch: Batch, dropped: Dropped | None = None
) -> None:
    """Write a batch, or replace it; its member sets are kept apart.

    Args:
        db: The spool, in a transaction.
        number: The batch's number.
        seal: The number of the first batch that was sealed with it.
        batch: Its rows.
        dropped: The dropped batches that one of its events reports.
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
    """The batches to deliver, oldest first: number, packed size, count of rows, and rows.

    Raises:
        UnreadableBatchError: One of them is not as it was put.
    """
    with closing(db.execute(f"{BATCHES} WHERE refused IS NULL ORDER BY number")) as found:
        for crc, packed, *keys in found:
            number, _, start_us, end_us, count = keys[:5]
            if crc != checksum(packed, *keys):
                raise UnreadableBatchError(number)
            rows = msgspec.msgpack.decode(zlib.decompress(packed), type=dict[str, list[Row]])
            yield number, len(packed), count, Batch(rows, start_us, end_us)


def drop_oldest(db: sqlite3.Connection, newest: int, reached: int, excess: int) -> Dropped | None:
    """Delete the oldest batches that the lake cannot know or take, until enough is gone.

    Batches that were sealed together are dropped together: the rest would claim that the time of
    the dropped rows is known.

    Args:
        db: The spool, in a transaction.
        newest: The first of the batches sealed last, which stay.
        reached: Up to which number the lake may know of them.
        excess: How many bytes too many there are.
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
