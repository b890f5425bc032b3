"""Rows that cannot be used are set aside with a reason, and harm nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kernel_inputs import one_call, together
from tests.kernel_tables import rolled_up
from tests.lake_builder import Batch
from tests.oracle import gold, stories

if TYPE_CHECKING:
    from lakehouse.kernel import run_in_duckdb
    from tests.oracle.plain import Rows

MISDATED = "its date is not that of its start"
"""The driver's reason: such rows are not of the hour that is recomputed."""

REASONS = {
    "it ends before it starts": 2,  # one of them of the agents' own account
    "it crosses a window of 5m": 1,
    "an edge is negative": 1,
    "an edge is longer than a day": 1,
    "the value is no number": 1,
    "a count is negative": 1,
    "no metric can have this name": 1,
    "a name is empty or too long": 1,
    "topic is missing": 1,
    "the partition is negative": 1,
    "it stands for no series": 1,
    "it stands for several series without a set": 1,
    "its member set is not known": 1,
    "its member set has several contents": 1,
    "it is not what its member set holds": 1,
    "it folds series that are not zero": 1,
}


@pytest.fixture(scope="module")
def found(program: run_in_duckdb.Program) -> dict[str, Rows]:
    return rolled_up(program, together(stories.all_stories()))


def of(found: dict[str, Rows], name: str, cluster: str) -> list[dict[str, object]]:
    return [
        {**dict(zip(gold.KEYS[name], key, strict=True)), **figures}
        for key, figures in found[name].items()
        if key[0] == cluster
    ]


def test_every_bad_row_is_set_aside_with_its_reason(found: dict[str, Rows]):
    counts = dict.fromkeys(REASONS, 0)
    for row in of(found, "rejected", "bad_input"):
        counts[row["reason"]] += row["row_count"]
    assert counts == REASONS


def test_a_row_that_waits_for_its_set_names_it(found: dict[str, Rows]):
    (waits,) = (
        row
        for row in of(found, "rejected", "bad_input")
        if row["reason"] == "its member set is not known"
    )
    assert waits["members"] == "unheard of"
    assert waits["ended_at"] - waits["started_at"] == 10_000_000
    assert (waits["agent"], waits["batch"]) == ("agent-1", 1)


def test_good_rows_beside_bad_ones_count_as_if_these_were_not_there(found: dict[str, Rows]):
    rows = of(found, "topics_windows", "bad_input")
    assert {row["metric"] for row in rows} == {stories.ISR, "kafka.partition.unavailable"}
    assert {(row["series_seen_us"], row["affected_high_us"]) for row in rows} == {(900_000_000, 0)}


def test_a_row_of_the_future_is_set_aside_where_it_lies(found: dict[str, Rows]):
    (rejected,) = of(found, "rejected", "in_the_future")
    assert rejected["reason"] == "it lies in the future"
    (window,) = {row["window_start"] for row in of(found, "partitions_windows", "in_the_future")}
    assert window < rejected["window_start"]


@pytest.mark.parametrize("end", [-(2**63), 2**63 - 1])
def test_an_end_beyond_all_time_harms_nothing(program: run_in_duckdb.Program, end: int):
    batch = Batch()
    for hour in (0, 3600):
        batch.run(stories.ISR, hour, hour + 60, 1.0, topic="t", partition=0)
        batch.scrape("min_isr", hour, hour + 60)
    batch.runs[-1]["end"] = batch.scrapes[-1]["end"] = end
    found = one_call(batch).roll_up(program)
    assert found["rejected"].num_rows == 2
    assert found["coverage"].num_rows == 1
