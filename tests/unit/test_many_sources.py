"""One recorder for several sources: their rows share batches, and none is mixed up with another."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from collector.encoding.encoder import Encoder
from collector.errors import SpoolError
from collector.model import Answer, Event, Identity, Reading, Scrape, Series
from collector.spool import source_states
from collector.spool.recorder import Recorder
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from lakehouse import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

S = 1_000_000
WINDOW = 60 * S
T0 = 1_700_000_040 * S
BOTH: Final = MappingProxyType({"broker-1": None, "broker-2": "cluster"})
START = Event(T0, "agent_start", Series(""))


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        yield spool


def recorder(spool: Spool, sources: Mapping[str, str | None] = BOTH) -> Recorder:
    return Recorder(spool, Scope(sources, {}, "hash"), WINDOW)


def scrape(source: str, second: int, value: float = 0.0) -> Scrape:
    at, node = T0 + second * S, source[-1:] or "1"
    reading = Reading("m", "gauge", values={Series("m", "t", 0): value})
    answer, identity = Answer((reading,), 1), Identity("cluster", node, "4.3.1", 1)
    return Scrape("f", at, at, at, 10 * S, "ok", identity, answer, source=source)


def failed(source: str, second: int) -> Scrape:
    at = T0 + second * S
    return Scrape("f", at, at, at + S, 10 * S, "timeout", error="it hangs", source=source)


def told(spool: Spool, table: tables.Table, *names: str) -> list[tuple[Any, ...]]:
    """Columns of all rows that wait; instants in seconds since T0."""
    at = [table.positions[name] for name in names]
    rows = [row for one in spool.waiting(1 << 40) for row in one.batch.rows.get(table.name, ())]
    return sorted(
        tuple(
            (row[place] - T0) // S if name in ("start", "end", "at") else row[place]
            for place, name in zip(at, names, strict=True)
        )
        for row in rows
    )


def coverage(spool: Spool) -> list[tuple[Any, ...]]:
    return told(spool, tables.SCRAPES, "source", "outcome", "start", "end")


def test_window_of_several_sources_is_one_batch(
    spool: Spool,
) -> None:
    record = recorder(spool)
    for second in range(0, 100, 10):
        record.record(scrape("broker-1", second, 1.0))
        hung = second >= 40
        record.record(failed("broker-2", second) if hung else scrape("broker-2", second, 2.0))
    assert record.seal(T0 + 100 * S)
    assert [one.number for one in spool.waiting(1 << 30)] == [1]
    assert told(spool, tables.RUNS, "source", "cluster", "value", "start", "end") == [
        ("broker-1", "cluster", 1.0, 0, 60),
        ("broker-2", "cluster", 2.0, 0, 40),
    ]
    assert coverage(spool) == [
        ("broker-1", "ok", 0, 60),
        ("broker-2", "ok", 0, 40),
        ("broker-2", "timeout", 40, 60),
    ]
    assert record.sealed_us == T0 + 60 * S
    assert record.last_window == (T0, {"m": 2})


def test_unanswered_source_delays_no_window(spool: Spool) -> None:
    record = recorder(spool)
    record.record(failed("broker-2", 1))
    for second in range(0, 100, 10):
        record.record(scrape("broker-1", second))
    assert record.seal(T0 + 100 * S)
    clusters = told(spool, tables.SCRAPES, "source", "cluster")
    assert set(clusters) == {("broker-1", "cluster"), ("broker-2", "cluster")}, "as configured"


def test_each_source_continues_after_start(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        for second in (0, 10, 20):
            record.record(scrape("broker-1", second, 1.0), scrape("broker-2", second, 2.0))
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        for second in (40, 50, 60):
            record.record(scrape("broker-1", second, 1.0), scrape("broker-2", second, 2.0))
        record.flush(T0 + 65 * S)
        runs = told(spool, tables.RUNS, "source", "value", "start", "end")
    assert runs == [
        (source, value, start, end)
        for source, value in (("broker-1", 1.0), ("broker-2", 2.0))
        for start, end in ((0, 20), (40, 60), (60, 65))
    ]


def test_removed_source_ends_at_last_scrape_and_can_return(
    spool: Spool,
) -> None:
    record = recorder(spool)
    for second in (0, 10, 20):
        record.record(scrape("broker-1", second), scrape("broker-2", second, 2.0))
    record.reconfigure(Scope({"broker-1": None}, {}, "hash"), START._replace(at=T0 + 25 * S))
    gone = ("broker-2", "ok", 0, 20)
    assert coverage(spool) == [gone], "and it is not zero, nor good, afterwards"
    record.record(scrape("broker-2", 30), scrape("broker-1", 30))  # it was under way
    record.reconfigure(Scope(BOTH, {}, "hash"), START._replace(at=T0 + 45 * S))
    for second in (40, 50):
        record.record(scrape("broker-1", second), scrape("broker-2", second + 5, 3.0))
    record.flush(T0 + 58 * S)
    assert coverage(spool) == [("broker-1", "ok", 0, 58), gone, ("broker-2", "ok", 45, 58)]
    assert told(spool, tables.EVENTS, "source", "kind", "at") == [("broker-2", "agent_start", 45)]


def test_source_removed_before_start_is_sealed_at_start(
    tmp_path: Path,
) -> None:
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        for second in (0, 10, 20):
            record.record(scrape("broker-1", second), scrape("broker-2", second))
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        recorder(spool, {"broker-2": None})
        assert coverage(spool) == [("broker-1", "ok", 0, 20)]
        back = recorder(spool)
        back.record(scrape("broker-1", 15), scrape("broker-1", 30), scrape("broker-1", 40))
        back.flush(T0 + 45 * S)
        found = [row for row in coverage(spool) if row[0] == "broker-1"]
    assert found == [("broker-1", "ok", 0, 20), ("broker-1", "ok", 30, 45)], "no time twice"


def test_unwritable_change_of_sources_has_no_effect(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = recorder(spool)
    record.record(scrape("broker-2", 0))

    def full(*_: object) -> int:
        raise SpoolError("the disk is full")

    start = START._replace(at=T0 + 5 * S)
    with monkeypatch.context() as patch:
        patch.setattr(spool, "seal", full)
        with pytest.raises(SpoolError):
            record.reconfigure(Scope({"broker-1": None}, {}, "other"), start)
    assert record.catalogue == "hash"
    record.record(scrape("broker-2", 10), scrape("broker-2", 20))
    record.flush(T0 + 25 * S)
    assert ("broker-2", "ok", 10, 25) in coverage(spool)


def test_agent_event_is_written_for_each_source(
    spool: Spool,
) -> None:
    record = recorder(spool, {})
    record.begin(T0)
    record.note(START)
    assert not record.seal(T0 + 200 * S)
    record.reconfigure(Scope(BOTH, {}, "hash"), START._replace(at=T0 + 5 * S))
    record.step_clock(T0 + 10 * S, T0 + 100 * S)
    record.flush(T0 + 110 * S)
    events = told(spool, tables.EVENTS, "source", "kind", "at")
    assert events == [
        (source, kind, at)
        for source in BOTH
        for kind, at in (("agent_start", 0), ("clock_step", 100))
    ]


def test_full_spool_writes_event_for_each_source(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool.db", 1) as spool:
        record = recorder(spool)
        for second in range(0, 200, 10):
            record.record(scrape("broker-1", second), scrape("broker-2", second))
            record.seal(T0 + second * S)
        found = told(spool, tables.EVENTS, "source", "kind")
    assert set(found) == {("broker-1", "batch_dropped"), ("broker-2", "batch_dropped")}
    assert record.dropped_batches


def test_spool_of_version_with_one_source_continues(tmp_path: Path) -> None:
    """State and journal as they were kept then."""
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        encoder = Encoder(WINDOW)
        for second in (0, 10):
            encoder.record(scrape("", second, 7.0))
        spool.seal([], msgspec.msgpack.encode(encoder))
        spool.append([source_states.entry_of(scrape("", 20, 7.0), encoder)])
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        assert record.found == []
        record.flush(T0 + 50 * S)
        runs = told(spool, tables.RUNS, "source", "value", "start", "end")
    assert runs == [("broker-1", 7.0, 0, 20)]
