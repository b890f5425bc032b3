"""Conversion of a spool from format 2 to format 3.

Format 2 has a table ``members`` and, in a batch, the rest of dropped batches. Its journal and
snapshot are equal in format 3.
"""

import sqlite3
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import msgspec

from collector.encoding.bronze_rows import Batch, Row
from collector.spool import spool_file
from collector.spool.batch_tables import put_batch
from lakehouse import tables

_FORMER: Final = "2"
_LEFT_BEHIND: Final = (".count", ".reserve")


class _Batch2(msgspec.Struct):
    rows: dict[str, list[Row]]
    inherited: list["_Batch2"] = msgspec.field(default_factory=list, name="bequest")


def upgrade(path: Path) -> None:
    """Convert undelivered batches with their numbers. Do not change any other file.

    A damaged file, or a file with batches of an old copy, stays in format 2 and is refused by the
    check that follows.
    """
    if not path.exists() or not _is_former(path):
        return
    wait = spool_file.BUSY_SECONDS
    with closing(sqlite3.connect(path, isolation_level=None, timeout=wait)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
            _convert(db)
            db.execute("COMMIT")
        except (sqlite3.Error, zlib.error, msgspec.MsgspecError, ValueError):
            return
    for end in _LEFT_BEHIND:
        with suppress(OSError):
            path.with_name(path.name + end).unlink(missing_ok=True)


def _is_former(path: Path) -> bool:
    try:
        with closing(spool_file.read_only(path)) as db:
            return spool_file.meta(db, "version") == _FORMER
    except sqlite3.Error:
        return False  # the check that follows reports it


def _convert(db: sqlite3.Connection) -> None:
    agent, batches = spool_file.meta(db, "agent"), []
    members = db.execute("SELECT row FROM members")
    sets = [msgspec.msgpack.decode(row, type=Row) for (row,) in members]
    query = "SELECT number, agent, rows, crc FROM batches ORDER BY number DESC"
    for number, owner, packed, crc in db.execute(query):
        if owner != agent or crc != spool_file.checksum(packed, number, owner):
            raise ValueError(number)
        batches.append((number, msgspec.msgpack.decode(zlib.decompress(packed), type=_Batch2)))
    for name in ("batches", "sets", "members", "findings"):
        db.execute(f"DROP TABLE {name}")
    spool_file.make_tables(db)
    for number, batch in batches:
        rows: dict[str, list[Row]] = {tables.MEMBERS.name: sets}  # the last batch has all of them
        sets = []
        for part in (*batch.inherited, batch):
            for name, own in part.rows.items():
                rows.setdefault(name, []).extend(own)
        spans = [
            (row[table.positions["start"]], row[table.positions["end"]])
            for table in (tables.RUNS, tables.SCRAPES)
            for row in rows.get(table.name, ())
        ]
        starts, ends = zip(*spans, strict=True) if spans else ((0,), (0,))
        put_batch(db, number, number, Batch(rows, min(starts), max(ends)))
    spool_file.put_meta(db, version=spool_file.VERSION)
