"""A spool of version 2, taken over: what waits in it is delivered under the numbers it has.

Version 2 kept member sets in the batches that brought them, and a batch under the id of the agent
that sealed it. Its journal and its snapshot are those of version 3.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import msgspec

from collector.batches import Batch, Row, span_of
from collector.spool_file import VERSION, create_tables, meta, put_meta
from collector.spool_rows import put_batch, put_sets

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

FORMER: Final = "2"
_LEFT_BEHIND: Final = (".count", ".reserve")


class _Batch2(msgspec.Struct):
    """A batch of version 2; ``bequest`` is what dropped batches left to it."""

    rows: dict[str, list[Row]]
    bequest: list[_Batch2] = msgspec.field(default_factory=list)


def upgrade(db: sqlite3.Connection, now_us: int) -> None:
    """Turn a spool of version 2 into one of this version, within a transaction.

    Batches of another agent id, which an old copy had left, are deleted; a finding says so.
    """
    for name in ("batches", "sets"):
        db.execute(f"ALTER TABLE {name} RENAME TO old_{name}")
    create_tables(db)
    # A set without a row is in the lake, and no waiting batch needs it: it is written once more.
    for packed, number in db.execute("SELECT row, batch FROM members JOIN old_sets USING (hash)"):
        put_sets(db, [msgspec.msgpack.decode(packed, type=Row)], number)
    agent, strangers = meta(db, "agent"), []
    for number, owner, packed in db.execute("SELECT number, agent, rows FROM old_batches"):
        if owner != agent:
            strangers.append(number)
            continue
        rows = _whole(msgspec.msgpack.decode(zlib.decompress(packed), type=_Batch2))
        put_batch(db, number, number, Batch(rows, *span_of(rows)))
    if strangers:
        finding = ("batch_dropped", f"{min(strangers)}..{max(strangers)}", None, now_us)
        db.execute("INSERT INTO findings VALUES (?, ?, ?, ?)", finding)
    for name in ("old_batches", "old_sets", "members"):
        db.execute(f"DROP TABLE {name}")
    put_meta(db, version=VERSION)


def tidy(path: Path) -> None:
    """Remove what version 2 kept beside the file.

    Raises:
        OSError: It cannot be removed.
    """
    for end in _LEFT_BEHIND:
        path.with_name(path.name + end).unlink(missing_ok=True)


def _whole(batch: _Batch2) -> dict[str, list[Row]]:
    rows: dict[str, list[Row]] = {}
    for part in (*batch.bequest, batch):
        for name, own in part.rows.items():
            rows.setdefault(name, []).extend(own)
    return rows
