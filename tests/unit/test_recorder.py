"""What happens while the spool cannot be written, and a clock that is set back: all is owned up to.

A limit of the kernel's on the size of files stands for the disk: SQLite's answer is a broken one's.
"""

from __future__ import annotations

import resource
from contextlib import contextmanager, suppress
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import pytest

from collector.errors import SpoolError
from collector.recorder import Recorder
from collector.samples import Answer, Identity, Reading, Scrape, Series
from collector.sealed import Event
from collector.spool import Spool
from lakehouse import tables

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
    return Recorder(spool, "broker-1", WINDOW, {}, "hash", None)


def scrape(second: int, value: float = 0.0, family: str = "f") -> Scrape:
    at = T0 + second * S
    reading = Reading(f"m.{family}", "gauge", values={Series("m", "t", 0): value})
    return Scrape(family, at, at, at, 10 * S, "ok", BROKER, Answer((reading,), 1))


def failed(second: int) -> Scrape:
    at = T0 + second * S
    return Scrape("f", at, at, at + 4 * S, 10 * S, "timeout", error="no answer in time")


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


def test_a_clock_set_back_just_before_the_stop_loses_no_window(spool: Spool) -> None:
    record = recorder(spool)
    for second in range(7200, 7260, 10):
        record.record(scrape(second))
    record.flush(T0 + 3660 * S)
    assert told(spool, tables.RUNS, "start", "end", "value") == [(7200, 7250, 0.0)]
    assert told(spool, tables.EVENTS, "kind", "at") == [("clock_step", 3660)]


def test_what_was_vouched_for_before_the_clock_was_set_back_is_not_told_twice(
    tmp_path: Path,
) -> None:
    """The source hung before the agent was killed; then the clock comes by that time again."""
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
    assert [run for run in runs if run[2] == 0.0] == [(100, 120, 0.0), (120, 140, 0.0)]


def test_a_step_of_the_clock_that_could_not_be_kept_is_kept_when_the_disk_works(
    spool: Spool,
) -> None:
    """And before it what was missed under the old clock, after it under the new one."""
    record = recorder(spool)
    for second in (7200, 7210):
        record.record(scrape(second))
    with no_file_may_grow():
        with suppress(SpoolError):
            record.record(scrape(7220))
        with pytest.raises(SpoolError):
            record.step_clock(T0 + 7230 * S, T0 + 3600 * S)
        for second in (3600, 3610):
            with suppress(SpoolError):
                record.record(scrape(second))
    for second in (3620, 3630):
        record.record(scrape(second, 2.0))
    record.flush(T0 + 3640 * S)
    assert told(spool, tables.RUNS, "start", "end", "value") == [
        (3620, 3640, 2.0), (7200, 7220, 0.0),
    ]  # fmt: skip
    assert told(spool, tables.SCRAPES, "start", "end", "outcome", "scrapes") == [
        (3600, 3620, "error", 2), (3620, 3640, "ok", 2),
        (7200, 7220, "ok", 2), (7220, 7230, "error", 1),
    ]  # fmt: skip
    assert told(spool, tables.EVENTS, "kind", "at") == [("clock_step", 3600)]


def test_events_that_could_not_be_kept_are_kept_when_the_disk_works(spool: Spool) -> None:
    record = recorder(spool)
    with no_file_may_grow():
        for work in (
            lambda: record.begin(T0),
            lambda: record.note(Event(T0, "agent_start", Series(""))),
            lambda: record.note(Event(T0 + S, "catalogue_change", Series(""))),
        ):
            with pytest.raises(SpoolError):
                work()
    record.record(scrape(10))
    record.flush(T0 + 20 * S)
    kinds = [("agent_start", 0), ("catalogue_change", 1)]
    assert told(spool, tables.EVENTS, "kind", "at") == kinds
    assert [one.batch.since.began_us for one in spool.waiting(1 << 40) if one.batch.since] == [T0]


def test_an_hour_without_a_disk_is_accounted_for_to_the_last_attempt(tmp_path: Path) -> None:
    """As other failed attempts are: cut at each window, and replayed alike after a kill."""
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        for second in range(0, 60, 10):
            record.record(scrape(second))
        with no_file_may_grow():
            for second in range(60, 3660, 10):
                for attempt in (
                    scrape(second, 1.0) if second % 20 else failed(second),
                    scrape(second + 5, family="g"),
                ):
                    with pytest.raises(SpoolError):
                        record.record(attempt)
        record.record(scrape(3660))
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        record = recorder(spool)
        record.record(scrape(3670))
        record.flush(T0 + 3680 * S)
        names = ("family", "start", "end", "outcome", "scrapes", "seconds_total", "seconds_max")
        accounts = told(spool, tables.SCRAPES, *names)
        (error,) = {row[0] for row in told(spool, tables.SCRAPES, "error", "start") if row[0]}
        runs = told(spool, tables.RUNS, "start", "end", "value")
    assert "it was made, but could not be kept: spool" in error
    families = {name: list(rows) for name, rows in groupby(accounts, key=lambda row: row[0])}
    own = [row[1:5] for row in families["f"]]
    assert own[0] == (0, 60, "ok", 6)
    assert own[1:-1] == [(at, at + 60, "error", 6) for at in range(60, 3660, 60)]
    assert own[-1] == (3660, 3680, "ok", 2)
    assert sum(row[5] for row in families["f"]) == pytest.approx(180 * 4)
    assert max(row[6] for row in families["f"]) == 4
    assert sum(row[4] for row in families["g"]) == 360
    assert {row[1] // 60 == (row[2] - 1) // 60 for row in families["g"]} == {True}
    assert {run for run in runs if run[0] >= 60} == {(3660, 3680, 0.0)}
