"""What lies in the spool's tables: batches packed, member sets, each with its checksum."""

from __future__ import annotations

import zlib
from contextlib import closing
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from collector.batches import Batch, Row
from collector.errors import SpoolError
from collector.spool_file import checksum
from lakehouse import tables

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator

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
        why: What is wrong with it.
    """

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"the spool's batch {number} is damaged ({why}); look at the disk")
        self.number = number


def put_batch(
    db: sqlite3.Connection, number: int, seal: int, batch: Batch, dropped: Dropped | None = None
) -> None:
    """Keep a batch, or replace it; its member sets apart from it.

    Args:
        db: The spool, in a transaction.
        number: The batch's number.
        seal: The number of the first batch that was sealed with it.
        batch: Its rows.
        dropped: What one of its events says was dropped.
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
    put_sets(db, batch.rows.get(_MEMBERS, ()), number)


def read_batches(db: sqlite3.Connection) -> Iterator[tuple[int, int, int, Batch]]:
    """The batches to deliver, oldest first: number, packed size, count of rows, and rows.

    Raises:
        UnreadableBatchError: One of them is not as it was put.
    """
    query = (
        "SELECT rows, crc, number, seal, start_us, end_us, count, lost_first, lost_from_us"
        " FROM batches WHERE refused IS NULL ORDER BY number"
    )
    with closing(db.execute(query)) as found:
        for packed, crc, *keys in found:
            number, _, start_us, end_us, count = keys[:5]
            if crc != checksum(packed, *keys):
                raise UnreadableBatchError(number, "its checksum is another")
            try:
                rows = msgspec.msgpack.decode(zlib.decompress(packed), type=dict[str, list[Row]])
            except (zlib.error, msgspec.DecodeError) as error:
                raise UnreadableBatchError(number, str(error)) from error
            yield number, len(packed), count, Batch(rows, start_us, end_us)


def put_sets(db: sqlite3.Connection, rows: Iterable[Row], number: int) -> None:
    """Keep member sets to which the batch of a number refers."""
    packed = [(row[0], row[1], msgspec.msgpack.encode(row)) for row in rows]
    db.executemany(
        "INSERT INTO sets VALUES (?, ?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET"
        " row = excluded.row, crc = excluded.crc, used = MAX(used, excluded.used)",
        [(*key, row, checksum(row, *key), number) for *key, row in packed],
    )


def drop_oldest(db: sqlite3.Connection, newest: int, reached: int, excess: int) -> Dropped | None:
    """Delete the oldest batches that the lake cannot know or take, until enough is gone.

    What was sealed together goes together: what is left of it would say that the time of what is
    gone is known.

    Args:
        db: The spool, in a transaction.
        newest: The first of the batches sealed last, which stay.
        reached: Up to which number the lake may know of them.
        excess: How many bytes too many there are.
    """
    gone: list[Dropped] = []
    for seal, size, *one in db.execute(
        "SELECT seal, SUM(LENGTH(rows)), MIN(COALESCE(lost_first, number)), MAX(number),"
        " MIN(COALESCE(lost_from_us, start_us)), MAX(end_us), COUNT(*) FROM batches"
        " WHERE (seal > ? OR refused IS NOT NULL) AND seal < ? GROUP BY seal ORDER BY seal",
        (reached, newest),
    ).fetchall():
        if excess <= 0:
            break
        db.execute(
            "DELETE FROM batches WHERE seal = ? AND (seal > ? OR refused IS NOT NULL)",
            (seal, reached),
        )
        gone.append(Dropped(*one))
        excess -= size
    if not gone:
        return None
    firsts, _, starts, ends, counts = zip(*gone, strict=True)
    return Dropped(min(firsts), gone[-1].last, min(starts), max(ends), sum(counts))
