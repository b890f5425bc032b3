"""The recorder: scrapes on disk are recorded once, and lost scrapes are unknown time.

A kernel limit on file size gives the same SQLite error as a broken disk.
"""

from __future__ import annotations

import resource
import sqlite3
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from collector.encoding.encoder import Encoder
from collector.encoding.expired_offsets import HIGH
from collector.errors import SpoolError
from collector.model import (
    Answer,
    Commit,
    Event,
    Identity,
    Offsets,
    Partition,
    Reading,
    Scrape,
    Series,
)
from collector.spool import source_states
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables
from lakehouse.tables.agent_names import LOST_IN_PARTITION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

S = 1_000_000
WINDOW = 60 * S
T0 = 1_700_000_040 * S
BROKER = Identity("cluster", "1", "4.3.1", 1)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        yield spool


def recorder(spool: Spool) -> Recorder:
    return Recorder(spool, Scope({"broker-1": None}, {}, "hash"), WINDOW)


def scrape(second: int, value: float = 0.0, family: str = "f") -> Scrape:
    at = T0 + second * S
    reading = Reading(f"m.{family}", "gauge", values={Series("m", "t", 0): value})
    return Scrape(family, at, at, at, 10 * S, "ok", BROKER, Answer((reading,), 1))


@contextmanager
def no_file_may_grow() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def told(spool: Spool, table: tables.Table, *names: str) -> list[tuple[Any, ...]]:
    """Columns of all rows that wait; instants in seconds since T0."""
    at = [table.column_names.index(name) for name in names]
    rows = [row for one in spool.waiting(1 << 40) for row in one.batch.rows.get(table.name, ())]
    instants = ("start", "end", "at")
    found = [
        tuple(
            (row[place] - T0) // S if name in instants else row[place]
            for place, name in zip(at, names, strict=True)
        )
        for row in rows
    ]
    return sorted(found, key=lambda row: [(value is not None, value) for value in row])


def seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp() - T0 / S


def test_clock_set_back_before_stop_loses_no_window(spool: Spool) -> None:
    record = recorder(spool)
    for second in range(7200, 7260, 10):
        record.record(scrape(second))
    record.flush(T0 + 3660 * S)
    assert told(spool, tables.RUNS, "start", "end", "value") == [(7200, 7250, 0.0)]
    assert told(spool, tables.EVENTS, "kind", "at") == [("clock_step", 3660)]


def test_time_before_clock_set_back_is_recorded_once(
    tmp_path: Path,
) -> None:
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        for second in (100, 110, 115):
            record.record(scrape(second))
        record.seal(T0 + 400 * S)
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        record.begin(T0 + 50 * S)
        for second in range(60, 200, 5):
            record.record(scrape(second, 1.0))
        record.flush(T0 + 200 * S)
        runs = told(spool, tables.RUNS, "start", "end", "value")
    assert all(first[1] <= second[0] for first, second in pairwise(runs)), runs
    assert [run for run in runs if run[2] == 0.0] == [(100, 115, 0.0)]


def test_time_between_two_agents_is_unknown(
    tmp_path: Path,
) -> None:
    """A kill, a lost tail of the log and a power loss look the same. Recorded scrapes are kept."""
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        for second, value in ((0, 0.0), (10, 0.0), (12, 5.0)):
            record.record(scrape(second, value))
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        record.record(scrape(20))
        record.flush(T0 + 25 * S)
        assert told(spool, tables.RUNS, "start", "end", "value") == [
            (0, 12, 0.0), (12, 12, 5.0), (20, 25, 0.0),
        ]  # fmt: skip
        assert told(spool, tables.SCRAPES, "start", "end", "scrapes") == [(0, 12, 3), (20, 25, 1)]


def test_unwritable_time_is_unknown_with_event(tmp_path: Path) -> None:
    """Once, with the agent's events of that time, and the same after a kill."""
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        for second in range(0, 60, 10):
            record.record(scrape(second))
        with no_file_may_grow():
            for second in range(60, 3660, 10):
                for attempt in (scrape(second, 1.0), scrape(second + 5, family="g")):
                    with pytest.raises(SpoolError):
                        record.record(attempt)
                with suppress(SpoolError):
                    record.seal(T0 + second * S)
            with pytest.raises(SpoolError):
                record.note(Event(T0 + 3650 * S, "catalogue_change", Series("")))
            assert record.sealed_us <= T0 + 60 * S, "what is on disk counts"
        record.record(scrape(3660))
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        record.record(scrape(3670))
        record.flush(T0 + 3680 * S)
        assert told(spool, tables.RUNS, "start", "end", "value") == [
            (0, 50, 0.0), (3660, 3660, 0.0), (3670, 3680, 0.0),
        ]  # fmt: skip
        assert {row[0] for row in told(spool, tables.SCRAPES, "outcome", "start")} == {"ok"}
        events = told(spool, tables.EVENTS, "kind", "old", "new")
    assert [row[0] for row in events] == ["catalogue_change", "spool_unwritable"]
    assert [seconds(instant) for instant in events[1][1:]] == [60, 3655]


def test_clock_set_back_while_unwritable_is_detected_later(spool: Spool) -> None:
    record = recorder(spool)
    for second in (7200, 7210):
        record.record(scrape(second))
    with no_file_may_grow():
        with suppress(SpoolError):
            record.record(scrape(7220))
        with pytest.raises(SpoolError):
            record.step_clock(T0 + 7230 * S, T0 + 3600 * S)
    for second in (3620, 3630):
        record.record(scrape(second, 2.0))
    record.flush(T0 + 3640 * S)
    assert told(spool, tables.RUNS, "start", "end", "value") == [
        (3620, 3640, 2.0), (7200, 7210, 0.0),
    ]  # fmt: skip
    assert told(spool, tables.EVENTS, "kind", "at") == [
        ("clock_step", 3620), ("spool_unwritable", 7230),
    ]  # fmt: skip


def test_scrapes_out_of_order_across_sources_are_no_clock_step(spool: Spool) -> None:
    record = recorder(spool)
    record.record(scrape(10, family="g"))
    with no_file_may_grow(), pytest.raises(SpoolError):
        record.record(scrape(20, family="g"))
    record.record(replace(scrape(9), answered_us=T0 + 9 * S + S // 2))
    record.flush(T0 + 30 * S)
    assert [row[0] for row in told(spool, tables.EVENTS, "kind")] == ["spool_unwritable"]


def test_agent_with_unwritable_start_starts(spool: Spool) -> None:
    record = recorder(spool)
    with no_file_may_grow():
        for work in (
            lambda: record.begin(T0),
            lambda: record.note(Event(T0, "agent_start", Series(""))),
        ):
            with pytest.raises(SpoolError):
                work()
    record.record(scrape(10))
    record.flush(T0 + 20 * S)
    kinds = [("agent_start", 0), ("spool_unwritable", 0)]
    assert told(spool, tables.EVENTS, "kind", "at") == kinds


class FaultyEncoder:
    """An encoder with an error for some readings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        observe = Encoder._observe

        def faulty(encoder: Encoder, family: Any, scrape: Scrape, *rest: Any) -> None:
            observe(encoder, family, scrape, *rest)
            if scrape.asked_us == T0 + 20 * S:
                raise KeyError("a fault")

        monkeypatch.setattr(Encoder, "_observe", faulty)


def test_unrecordable_response_is_failed_scrape_only(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = recorder(spool)
    FaultyEncoder(monkeypatch)
    for second in (0, 10):
        record.record(scrape(second), scrape(second, family="g"))
    with pytest.raises(KeyError):
        record.record(scrape(20, 1.0))
    for second in (25, 30):
        record.record(scrape(second, family="g"))
    record.record(scrape(30))
    record.flush(T0 + 35 * S)
    assert told(spool, tables.RUNS, "start", "end", "value", "metric") == [
        (0, 20, 0.0, "m"), (0, 35, 0.0, "m"), (30, 35, 0.0, "m"),
    ]  # fmt: skip
    accounts = told(spool, tables.SCRAPES, "family", "start", "end", "outcome", "error")
    assert [row[:4] for row in accounts] == [
        ("f", 0, 20, "ok"), ("f", 20, 30, "error"), ("f", 30, 35, "ok"), ("g", 0, 35, "ok"),
    ]  # fmt: skip
    assert accounts[1][4].startswith("it could not be recorded: unexpected KeyError: 'a fault' (")


@pytest.mark.parametrize("what", ["raises", "garbage"])
def test_damaged_journal_is_replayed_up_to_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """An agent that died at each start, and kept with it what waited, was of no use to anybody."""
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        record.record(scrape(-60))
        record.flush(T0 - 55 * S)
        for second in (0, 10, 20, 30):
            record.record(scrape(second))
        if what == "garbage":
            spool.append([b"\xc1"])
    if what == "raises":
        FaultyEncoder(monkeypatch)
    for _ in range(2):
        with Spool(tmp_path / "spool.db", 1 << 20) as spool:
            record = recorder(spool)
    record = recorder(spool := Spool(tmp_path / "spool.db", 1 << 20))
    record.record(scrape(40))
    record.flush(T0 + 45 * S)
    last = 10 if what == "raises" else 30
    assert told(spool, tables.RUNS, "start", "end") == [(-60, -55), (0, last), (40, 45)]
    ((kind, why),) = told(spool, tables.EVENTS, "kind", "new")
    assert kind == "journal_unreadable"
    assert why.startswith("entry 3 of 4:" if what == "raises" else "entry 5 of 5:")
    spool.close()


def test_unreadable_snapshot_restarts_and_keeps_batches(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    with Spool(path, 1 << 20) as spool:
        record = recorder(spool)
        record.record(scrape(0))
        record.flush(T0 + 5 * S)
        spool.seal([], b"\xc1")
    with Spool(path, 1 << 20) as spool:
        record = recorder(spool)
        record.record(scrape(20))
        record.flush(T0 + 25 * S)
        assert told(spool, tables.RUNS, "start", "end") == [(0, 5), (20, 25)]
        assert [row[0] for row in told(spool, tables.EVENTS, "kind")] == ["journal_unreadable"]


def test_moments_of_history_share_one_transaction(spool: Spool, tmp_path: Path) -> None:
    record = recorder(spool)
    with closing(sqlite3.connect(tmp_path / "spool.db")) as db:
        (before,) = db.execute("PRAGMA data_version").fetchone()
        record.record(*(scrape(second) for second in range(0, 50, 10)))
        (after,) = db.execute("PRAGMA data_version").fetchone()
        assert after == before + 1
        assert db.execute("SELECT COUNT(*) FROM journal").fetchone() == (5,)


def test_scrape_without_response_has_journal_entry(spool: Spool) -> None:
    record = recorder(spool)
    at = T0 + 10 * S
    why = "no answer in time"
    failed = Scrape("f", at, at, at + 4 * S, 10 * S, "timeout", error=why, source="broker-1")
    record.record(failed)
    _, (entry,) = spool.recover()
    decoded = msgspec.msgpack.decode(entry, type=source_states.Entry)
    assert source_states.scrape_of(decoded, Encoder(WINDOW)) == failed


def test_lost_offsets_total_survives_restart(tmp_path: Path) -> None:
    """Counters do not restart with the agent. Counters of another cluster start at zero."""
    group, partition = Commit("g", "t", 0), Partition("t", 0)

    def read(second: int, start: int, of: Identity = BROKER) -> Scrape:
        offsets = Offsets({group: 5}, {partition: start}, {group: start})
        one = scrape(second)
        return replace(one, identity=of, answer=Answer((), 1, offsets=offsets))

    total, single = (
        Series(HIGH, "t", group="g"), Series(LOST_IN_PARTITION[HIGH], "t", 0, group="g")
    )  # fmt: skip
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        for second, start in ((0, 0), (10, 12), (20, 12)):
            record.record(read(second, start))
        record.seal(T0 + 400 * S)
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        assert record.lost()["broker-1"] == {total: 7, single: 7}
        record.record(read(500, 12), read(510, 15))
        assert record.lost()["broker-1"] == {total: 10, single: 10}
        record.record(read(520, 0, Identity("other", "1", "4.3.1", 1)))
        assert record.lost()["broker-1"] == {}
