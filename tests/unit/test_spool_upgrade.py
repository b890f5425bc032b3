"""Conversion of a spool of format 2 (spool-2.db.xz, written by an agent of that version).

It has five undelivered batches, the first with the rest of dropped ones, and two scrapes in the
journal.
"""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from collector.delivery.delivery import commit_group
from collector.errors import SpoolError
from collector.model import Answer, Identity, Reading, Scrape, Series
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables

S = 1_000_000
T0 = 1_700_000_040 * S
WAITING = [6, 7, 8, 9, 10]
ACCOUNT = tables.SCRAPES.positions
EVENT = tables.EVENTS.positions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "spool.db"
    path.write_bytes(lzma.decompress(Path(__file__).with_name("spool-2.db.xz").read_bytes()))
    for end in (".lock", ".count", ".reserve"):
        path.with_name(f"spool.db{end}").touch()
    return path


def recorder(spool: Spool) -> Recorder:
    return Recorder(spool, Scope({"broker-1": None}, {}, "hash"), 60 * S)


def rows(spool: Spool, table: tables.Table) -> list[tuple[Any, ...]]:
    return [row for one in spool.waiting(1 << 40) for row in one.batch.rows.get(table.name, ())]


def test_format_2_keeps_batch_numbers_and_continues(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        ((agent,),) = db.execute("SELECT value FROM meta WHERE key = 'agent'").fetchall()
    for _ in range(2):
        with Spool(path, 1 << 20) as spool:
            assert [one.number for one in spool.waiting(1 << 40)] == WAITING
            assert (spool.agent, spool.reached, spool.last_number) == (agent, 3, 10)
            assert not spool.found
            assert len(spool.recover()[1]) == 2
            waiting = spool.waiting(1 << 40)
            place, cluster = (tables.RUNS.positions[name] for name in ("members", "cluster"))
            runs = [row for one in waiting for row in one.batch.rows.get(tables.RUNS.name, ())]
            needed = {(row[place], row[cluster]) for row in runs if row[place] is not None}
            assert {row[:2] for row in map(tuple, commit_group(spool, waiting).sets)} == needed
            assert len(needed) == 3
    with Spool(path, 1 << 20) as spool:
        record = recorder(spool)
        at = T0 + 600 * S
        reading = Reading("m", "gauge", frozenset({Series("m", "t", 0)}))
        identity = Identity("cluster", "1", "4.3.1", 1)
        record.record(Scrape("f", at, at, at, 10 * S, "ok", identity, Answer((reading,), 1)))
        record.flush(at + 5 * S)
        told = sorted(
            (row[ACCOUNT["start"]], row[ACCOUNT["end"]]) for row in rows(spool, tables.SCRAPES)
        )
    spans = [((start - T0) / S, (end - T0) / S) for start, end in told]
    assert spans[0][0] == 120, "what dropped ones had left"
    assert all(one[1] == after[0] for one, after in pairwise(spans[:-1]))
    assert spans[-2][1] == pytest.approx(590.1)
    assert spans[-1] == (600, 605)
    assert sorted(one.name for one in path.parent.iterdir()) == ["spool.db", "spool.db.lock"]


@pytest.mark.parametrize(
    "change",
    ["UPDATE batches SET crc = crc + 1 WHERE number = 7", "UPDATE batches SET agent = 'other'"],
)
def test_damaged_format_2_is_refused_and_unchanged(path: Path, change: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(change)
        db.commit()
    before = path.read_bytes()
    with pytest.raises(SpoolError, match="another version of jmxlake-agent"), Spool(path, 1 << 20):
        pass
    assert path.read_bytes() == before
