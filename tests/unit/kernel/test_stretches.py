"""Stretches within an hour, lags and racks: what the generated fleets seldom have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.kernel import run_in_duckdb
from tests.kernel_inputs import call_a_unit, of_clusters, one_call
from tests.kernel_tables import bronze, by_key, rolled_up
from tests.lake_builder import Batch
from tests.oracle import gold
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from tests.oracle.plain import Rows

pytestmark = pytest.mark.slow

ISR = "kafka.partition.under_min_isr"
LAG = "kafka.topic.remote_copy_lag.bytes"
FENCED = "kafka.cluster.node.fenced"
SECOND = 1_000_000
HOUR = 3600
PARTITION = {"topic": "t", "partition": 0}


CASES: dict[str, Callable[[Batch], None]] = {}


def case(write: Callable[[Batch], None]) -> Callable[[Batch], None]:
    """Add the rows of a cluster: all cases share the calls of the kernel."""
    CASES[write.__name__] = write
    return write


Rowed = dict[str, list[dict[str, Any]]]
Found = Callable[[Callable[[Batch], None]], Rowed]


@pytest.fixture
def batch() -> Batch:
    return Batch()


@pytest.fixture(scope="module")
def rows(program: run_in_duckdb.Program) -> Found:
    """Give the rows of a case, which are as the oracle has them and the same of a part a window."""
    batches = {name: Batch() for name in CASES}
    for name, batch in batches.items():
        CASES[name](batch)
    batch = of_clusters(batches)
    right = gold.wanted(bronze(batch), OBJECTIVES)
    for pieces in (1, 12):
        found = by_key(one_call(batch).roll_up(program, pieces))
        for name in ("incidents", "readings", "lags"):
            assert gold.differences(name, found[name], right[name]) == []

    def of(write: Callable[[Batch], None]) -> Rowed:
        return {
            name: [
                {**dict(zip(gold.KEYS[name], key, strict=True)), **row}
                for key, row in rows.items()
                if key[0] == write.__name__
            ]
            for name, rows in right.items()
        }

    return of


@case
def over_windows(batch: Batch) -> None:
    for start, value in ((100, 1.0), (300, 3.0), (600, 2.0)):
        batch.run(ISR, start, start // 300 * 300 + 300, value, lead=7, tail=5, **PARTITION)
    batch.run(ISR, 901, 910, 1.0, flags=("known_wrong",), **PARTITION)


def test_a_stretch_goes_on_over_windows(rows: Found):
    first, second = rows(over_windows)["incidents"]
    assert (first["worst"], first["total"], first["runs"]) == (3.0, 6.0, 3)
    assert (first["lead_us"], first["tail_us"]) == (7 * SECOND, 5 * SECOND)
    assert (first["level"], first["known_wrong"]) == ("partition", False)
    assert (second["runs"], second["known_wrong"]) == (1, True)


@case
def long_tail(batch: Batch) -> None:
    batch.run(ISR, 500, 600, 1.0, tail=5, **PARTITION)
    batch.run(ISR, 600, 900, 1.0, tail=300, **PARTITION)
    batch.run(ISR, 900, 901, 1.0, tail=5, **PARTITION)


def test_a_tail_goes_back_over_windows_that_may_not_have_been_bad(rows: Found):
    (row,) = rows(long_tail)["incidents"]
    assert row["tail_us"] == 306 * SECOND


@case
def all_tail(batch: Batch) -> None:
    batch.run(ISR, HOUR - 10, HOUR, 1.0, tail=3, **PARTITION)
    for start, end in ((HOUR, HOUR + 300), (HOUR + 300, HOUR + 310)):
        batch.run(ISR, start, end, 1.0, tail=300, **PARTITION)


def test_of_a_stretch_that_may_not_have_been_bad_the_tail_is_all(rows: Found):
    before, after = rows(all_tail)["incidents"]
    assert before["tail_us"] == 3 * SECOND
    assert after["tail_us"] == after["ended_at"] - after["started_at"] == 310 * SECOND


@case
def not_watched(batch: Batch) -> None:
    for metric in ("kafka.partition.lag", "my.own.bytes", "kafka.partition.size"):
        batch.run(metric, 0, 10, 1.0, **PARTITION)


def test_what_is_not_watched_has_no_stretches(rows: Found):
    (row,) = rows(not_watched)["incidents"]
    assert row["metric"] == "kafka.partition.lag", "an objective is about it"


@case
def errors(batch: Batch) -> None:
    for start, error in ((0, None), (300, "slow"), (600, "dead"), (HOUR, "dead")):
        batch.scrape("min_isr", start, start + 300, "timeout", error=error)
    batch.scrape("min_isr", 300, 600, "timeout", error="lost")
    batch.scrape("min_isr", 1000, 1010, "timeout")


def test_a_reading_has_the_error_of_its_first_attempt_that_has_one(rows: Found):
    assert [(row["scrapes"], row["error"]) for row in rows(errors)["readings"]] == [
        (90, "lost"), (1, None), (30, "dead"),
    ]  # fmt: skip


@case
def lags(batch: Batch) -> None:
    batch.run(LAG, 0, 100, 9.0, topic="t")
    batch.run(LAG, 100, 300, 5.0, topic="t")
    batch.run(LAG, 300, 310, None, topic="t")
    batch.run(LAG, 0, 10, 7.0, topic="t", source="broker-2")
    batch.zeros(LAG, 0, 300, topic="folded", partitions=[0, 1])


def test_the_lag_is_that_of_the_last_run_of_a_window(rows: Found):
    found = rows(lags)["lags"]
    assert sorted((row["topic"], row["source"], row["value_last"]) for row in found) == [
        ("folded", "broker-1", 0.0), ("t", "broker-1", 0.0), ("t", "broker-1", 5.0),
        ("t", "broker-2", 7.0),
    ]  # fmt: skip


def racks(program: run_in_duckdb.Program, batch: Batch) -> dict[str, str | None]:
    """By source, the same whichever hours are merged first."""
    right = gold.wanted(bronze(batch), OBJECTIVES)["subjects"]
    calls = [call.roll_up(program)["subjects"] for call in call_a_unit(batch)]
    for order in (calls, calls[::-1]):
        merged = order[0]
        for other in order[1:]:
            merged = run_in_duckdb.merge_subjects(program, merged, other)
        again = run_in_duckdb.merge_subjects(program, merged, calls[0])
        for one in (merged, again):
            assert subjects(one) == right
    assert rolled_up(program, batch)["subjects"] == right
    return {key[-1]: row["rack"] for key, row in right.items()}


def subjects(found: Any) -> Rows:
    return by_key({"subjects": found})["subjects"]


def fenced(batch: Batch, start: float, node: str, rack: str | None, value: float = 0.0) -> None:
    labels = [("node", node), *([("rack", rack)] if rack is not None else [])]
    source = f"controller-{len(batch.runs)}"
    batch.run(FENCED, start, start + 300, value, source=source, labels=labels)


def test_a_broker_has_the_rack_that_was_reported_last(program: run_in_duckdb.Program, batch: Batch):
    fenced(batch, 0, "broker-1", "a")
    fenced(batch, HOUR, "broker-1", "b")
    fenced(batch, 0, "broker-2", "a")
    fenced(batch, HOUR, "broker-2", None)
    fenced(batch, 0, "broker-3", "a")
    fenced(batch, HOUR, "broker-3", "")
    batch.run("kafka.topic.partitions", HOUR + 300, HOUR + 600, 1.0, topic="t")
    assert racks(program, batch) == {
        "broker-1": "b",
        "broker-2": None,
        "broker-3": None,
        None: None,
    }


def test_of_several_racks_reported_at_one_instant_one_is_chosen(
    program: run_in_duckdb.Program, batch: Batch
):
    for rack in ("a", None, "c", "b"):
        fenced(batch, 0, "broker-1", rack)
    for value, rack in ((1.0, "a"), (0.0, "b")):
        fenced(batch, 0, "broker-2", rack, value)
    assert racks(program, batch) == {"broker-1": "c", "broker-2": "a"}


def test_gold_of_an_older_version_learns_racks(program: run_in_duckdb.Program, batch: Batch):
    fenced(batch, 0, "broker-1", "a")
    (call,) = call_a_unit(batch)
    reported = call.roll_up(program)["subjects"]
    at = reported.schema.get_field_index("rack")
    known = reported.set_column(at, "rack", [[None]]).cast(reported.schema)
    assert subjects(run_in_duckdb.merge_subjects(program, known, reported)) == subjects(reported)
