"""The oracle by itself: what the comparisons with it stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kernel_inputs import together
from tests.kernel_tables import COMMITTED, bronze
from tests.lake_builder import Batch, micros
from tests.oracle import decoded, fleets, gold, hours, promises, stretches, whole_hours
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from pathlib import Path

ISR = "kafka.partition.under_min_isr"
WINDOW_US = 300_000_000


def test_rows_in_memory_are_read_as_those_of_a_lake(tmp_path: Path):
    batch = together(map(fleets.fleet, range(20)))
    batch.commit(tmp_path)
    now_us = int(COMMITTED.timestamp()) * 1_000_000
    of_lake = decoded.read(tmp_path, now_us)
    in_memory = decoded.bronze(batch.runs, batch.members, batch.scrapes, now_us)
    for name in ("runs", "scrapes"):
        rows = [sorted(map(repr, getattr(read, name))) for read in (of_lake, in_memory)]
        assert rows[0] == rows[1]
        assert rows[0]


def test_hours_and_kept_windows_say_what_all_windows_did():
    read = bronze(together(map(whole_hours.fleet, range(12))))
    every = promises.sli(read, OBJECTIVES)
    found = gold.wanted(read, OBJECTIVES)
    assert len(found["sli_windows"]) < len(every) / 2, "most is good, and is not kept twice"
    assert hours.unfolded(found["sli"], found["sli_windows"], WINDOW_US) == every


@pytest.fixture
def batch() -> Batch:
    return Batch()


def incidents(batch: Batch) -> list[tuple[int, ...]]:
    """Start, end, lead and tail of each, seconds after the first."""
    found = stretches.incidents(bronze(batch), {ISR})
    edges = (
        (key[-1], row["ended_at"], row["lead_us"], row["tail_us"]) for key, row in found.items()
    )
    first = micros(0)
    return sorted(
        ((start - first) // 10**6, (end - first) // 10**6, lead // 10**6, tail // 10**6)
        for start, end, lead, tail in edges
    )


def test_runs_of_one_source_that_touch_are_one_incident(batch: Batch):
    where = {"topic": "t", "partition": 0}
    batch.run(ISR, 290, 300, 1.0, lead=3, tail=5, **where)
    batch.run(ISR, 300, 310, 1.0, lead=8, tail=4, **where)
    batch.run(ISR, 311, 320, 1.0, **where)
    batch.run(ISR, 300, 310, 1.0, source="broker-2", **where)
    assert incidents(batch) == [(290, 310, 3, 4), (300, 310, 0, 0), (311, 320, 0, 0)]


def test_a_tail_as_long_as_its_run_goes_on_in_the_run_before(batch: Batch):
    where = {"topic": "t", "partition": 0}
    batch.run(ISR, 280, 300, 1.0, tail=5, **where)
    batch.run(ISR, 300, 304, 1.0, tail=10, **where)
    assert incidents(batch) == [(280, 304, 0, 9)]


def test_an_incident_ends_with_its_hour_and_the_next_one_goes_on(batch: Batch):
    where = {"topic": "t", "partition": 0}
    batch.run(ISR, 3590, 3600, 1.0, **where)
    batch.run(ISR, 3600, 3605, 1.0, tail=9, **where)
    assert incidents(batch) == [(3590, 3600, 0, 0), (3600, 3605, 0, 5)]


def test_attempts_of_one_outcome_that_touch_are_one_reading(batch: Batch):
    batch.scrape("min_isr", 0, 100, "timeout")
    batch.scrape("min_isr", 100, 200, "timeout", error="slow")
    batch.scrape("min_isr", 200, 300, "timeout", error="dead")
    batch.scrape("min_isr", 310, 400)
    found = stretches.readings(bronze(batch))
    told = {key[4]: (row["scrapes"], row["error"]) for key, row in found.items()}
    assert told == {"timeout": (30, "slow"), "ok": (9, None)}
