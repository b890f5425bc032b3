"""What is read twice counts once: by two agents, in two batches, or in one that is there twice."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.kernel import run_in_duckdb
from tests.kernel_inputs import by_subject, of_clusters, one_call, placed, shuffled, together
from tests.kernel_tables import bronze, by_key, differing, in_order, of_cluster, rolled_up
from tests.lake_builder import Batch
from tests.oracle import doubled, gold, once
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.oracle.plain import Rows

SECOND = 1_000_000
WINDOW = 300 * SECOND
ISR, LED = "kafka.partition.under_min_isr", "kafka.broker.led_partitions"
SHRINKS, LOST = "kafka.broker.isr_shrinks", "kafka.group.non_consumed"
READ = "kafka.topic.remote_fetch.bytes"
COPY_LAG, GROUP_LAG = "kafka.topic.remote_copy_lag.bytes", "kafka.group.lag"

FLEETS = 60


def told(agent: str = "agent-m", first: float = 0, last: float = 900, **where: Any) -> Batch:
    """All kinds of rows that an agent writes of a broker from one instant to another."""
    batch = Batch(agent=agent)
    edges = [first, *(at for at in range(0, 9000, 300) if first < at < last), last]
    for start, end in pairwise(edges):
        for family in ("min_isr", "tiered", "offsets"):
            batch.scrape(family, start, end, **where)
        batch.run(LED, start, end, 3.0, **where)
        batch.counter(SHRINKS, start, end, 5.0, **where)
        batch.counter(READ, start, end, 1000.0, topic="t", **where)
        batch.run(COPY_LAG, start, end, 6.0, topic="t", **where)
        batch.zeros(ISR, start, end, topic="t", partitions=[0, 1], **where)
        batch.run(ISR, start, (start + end) / 2, 1.0, topic="t", partition=2, tail=9.0, **where)
        batch.run(ISR, (start + end) / 2, end, 0.0, topic="t", partition=2, **where)
        batch.idle(
            "kafka.client.fetch.throttle_time", start, end, [("u", "c"), ("u", "d")], **where
        )
        of_group = {"group": "g", "topic": "t", **where}
        batch.run(GROUP_LAG, start, end, 12.0, **of_group)
        for bound in ("low", "high"):
            batch.counter(f"{LOST}.{bound}", start, end, 9.0, partition=0, **of_group)
    return batch


def by(agent: str, batch: Batch) -> Batch:
    return replace(
        batch,
        runs=[{**row, "agent": agent} for row in batch.runs],
        scrapes=[{**row, "agent": agent} for row in batch.scrapes],
    )


def in_batch(number: int, batch: Batch) -> Batch:
    return replace(
        batch,
        runs=[{**row, "batch": number} for row in batch.runs],
        scrapes=[{**row, "batch": number} for row in batch.scrapes],
    )


def figures(found: dict[str, Rows]) -> dict[str, Rows]:
    return {name: rows for name, rows in found.items() if name != "rejected"}


def reasons(found: dict[str, Rows]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key, row in found["rejected"].items():
        counts[key[2]] = counts.get(key[2], 0) + row["row_count"]
    return counts


DOUBLES: dict[str, tuple[Callable[[Batch], Batch], str]] = {
    "an agent with a greater id": (lambda one: by("agent-z", one), once.ANOTHER),
    "an agent with a smaller id": (lambda one: by("agent-a", one), once.ANOTHER),
    "the same batch": (lambda one: one, once.TWICE),
    "a copy of the spool": (lambda one: in_batch(7, one), once.TWICE),
}


@pytest.fixture(scope="module")
def of_doubles(program: run_in_duckdb.Program) -> dict[str, Rows]:
    """Return gold of all doubles, each in a cluster of its name, and of the single rows."""
    alone = told()
    every = {name: together((alone, again(alone))) for name, (again, _) in DOUBLES.items()}
    return rolled_up(program, of_clusters({**every, "alone": alone}))


@pytest.mark.edge(3)
@pytest.mark.parametrize("double", DOUBLES)
def test_double_leaves_every_figure(of_doubles: dict[str, Rows], double: str):
    alone, found = told(), of_cluster(of_doubles, double)
    assert figures(found) == figures(of_cluster(of_doubles, "alone"))
    assert figures(found)["sources"], "no figure proves nothing"
    assert reasons(found) == {DOUBLES[double][1]: len(alone.runs) + len(alone.scrapes)}


@pytest.mark.edge(3)
@pytest.mark.parametrize("other", ["agent-a", "agent-z"])
def test_day_missing_and_twice_is_no_coverage(program: run_in_duckdb.Program, other: str):
    """The first hour is there twice and the second was read by nobody."""
    alone = told(last=3600)
    found = rolled_up(program, together((alone, by(other, alone), told(first=7200, last=8100))))
    lasts = {key[1:]: row["outcome_us"] for key, row in found["coverage"].items()}
    assert sorted(set(lasts.values())) == [900 * SECOND, 3600 * SECOND]


SINGLES: dict[str, Batch] = {
    "the agent's id changes at a restart": together((told("b", 0, 460), told("a", 470, 900))),
    "it follows without a hole": together((told("b", 0, 460), told("a", 460, 900))),
    "one broker in two clusters": together((told("a"), told("b", cluster="other"))),
    "another broker": together((told("a"), told("b", source="broker-2"))),
    "a cluster as a whole": together((told("a"), told("b", source="cluster-x"))),
}


@pytest.mark.edge(3)
@pytest.mark.parametrize("single", SINGLES)
def test_no_double_sets_nothing_aside(program: run_in_duckdb.Program, single: str):
    assert reasons(rolled_up(program, SINGLES[single])) == {}


@pytest.mark.edge(3)
def test_agent_of_other_families_is_no_double(program: run_in_duckdb.Program):
    one, other = Batch(agent="a"), Batch(agent="b")
    one.scrape("min_isr", 0, 300)
    one.counter(SHRINKS, 0, 300, 5.0)
    other.scrape("tiered", 0, 300)
    other.run(COPY_LAG, 0, 300, 6.0, topic="t")
    found = rolled_up(program, together((one, other)))
    assert reasons(found) == {}
    assert {key[3] for key in found["coverage"]} == {"min_isr", "tiered"}


@pytest.mark.edge(3)
def test_hole_of_the_first_agent_is_filled(program: run_in_duckdb.Program):
    first = together((told("a", 0, 100), told("a", 200, 300)))
    found = rolled_up(program, together((first, told("b", 0, 300))))
    (gauge,) = (row for key, row in found["sources_windows"].items() if key[2] == LED)
    assert gauge["series_seen_us"] == WINDOW
    assert gauge["value_seconds"] == 900.0
    assert {row["outcome_us"] for row in found["coverage_windows"].values()} == {WINDOW}


@pytest.mark.edge(3)
def test_counter_cut_in_part_is_unknown(program: run_in_duckdb.Program):
    """A handover with five seconds of overlap: the increase before it is not known."""
    found = rolled_up(program, together((told("b", 0, 205), told("a", 200, 300))))
    (counter,) = (row for key, row in found["sources_windows"].items() if key[2] == SHRINKS)
    assert (counter["increase"], counter["series_seen_us"]) == (5.0, 100 * SECOND)
    (lost,) = found["lost_offsets_windows"].values()
    assert (lost["offsets_low"], lost["series_seen_us"]) == (9.0, 100 * SECOND)
    assert lost["series_unknown_us"] == 200 * SECOND


@pytest.mark.edge(3)
def test_history_beside_an_agent_counts_once(program: run_in_duckdb.Program):
    """An import from Prometheus, a scrape a minute, of time that an agent read as well."""
    history = told("import-prometheus", 0, 600)
    found = rolled_up(program, together((told("agent", 120, 600), history)))
    for row in found["coverage_windows"].values():
        assert row["outcome_us"] == WINDOW
    lags = [row for key, row in found["groups_windows"].items() if key[2] == GROUP_LAG]
    assert [row["series_seen_us"] for row in lags] == [WINDOW] * 2


@pytest.mark.edge(3)
def test_success_wins_over_a_failure(program: run_in_duckdb.Program):
    every = {}
    for outcome in ("timeout", "down", "refused", "dropped"):
        good, bad = Batch(agent="z"), Batch(agent="a")
        good.scrape("min_isr", 100, 300)
        bad.scrape("min_isr", 0, 250, outcome, error="no")
        every[outcome] = together((good, bad))
    of_all = rolled_up(program, of_clusters(every))
    for outcome in every:
        found = of_cluster(of_all, outcome)
        lasts = {key[4]: row["outcome_us"] for key, row in found["coverage"].items()}
        assert lasts == {"ok": 200 * SECOND, outcome: 100 * SECOND}
        (sli,) = (row for key, row in found["sli_windows"].items() if key[2] == "coverage")
        assert (sli["good_us"], sli["bad_us"]) == (200 * SECOND, 100 * SECOND)


@pytest.fixture(scope="module")
def batch() -> Batch:
    return placed(together(map(doubled.fleet, range(FLEETS))))


@pytest.fixture(scope="module")
def found(program: run_in_duckdb.Program, batch: Batch) -> dict[str, Rows]:
    return rolled_up(program, batch)


@pytest.fixture(scope="module")
def right(batch: Batch) -> dict[str, Rows]:
    return gold.wanted(bronze(batch), OBJECTIVES)


@pytest.mark.slow
@pytest.mark.parametrize("name", gold.KEYS)
def test_doubles_are_as_plain_python_has_them(
    found: dict[str, Rows], right: dict[str, Rows], name: str
):
    assert right[name], "an empty table proves nothing"
    # Each interval of a mean of several reports is rounded to a millionth.
    differences = gold.differences(name, found[name], right[name], slack=1e-5)
    assert not differences, "\n".join((f"{len(differences)} differences", *differences[:10]))


@pytest.mark.slow
def test_doubles_hold_every_reason(found: dict[str, Rows]):
    assert {once.TWICE, once.ITSELF, once.ANOTHER, once.DENIED} <= reasons(found).keys()


@pytest.mark.slow
def test_order_and_parts_of_doubles_do_not_matter(program: run_in_duckdb.Program, batch: Batch):
    right = one_call(batch).roll_up(program)
    again = one_call(shuffled(batch, 3)).roll_up(program, 12)
    assert differing(again, right) == []
    parts = one_call(shuffled(batch, 3), by_subject(2), program.describing).merged(program)
    parts["subjects"] = run_in_duckdb.merge_subjects(
        program, right["subjects"].slice(0, 0), parts["subjects"]
    )
    ordered, once = (
        {name: in_order([rows], name) for name, rows in tables.items()} for tables in (parts, right)
    )
    assert differing(ordered, once) == []


def test_no_time_of_a_series_exceeds_its_window(program: run_in_duckdb.Program):
    """No guard is needed in the kernel: of a series no instant is left to two runs."""
    batch = placed(together(map(doubled.fleet, range(20))))
    found = rolled_up(program, batch)
    outcomes: dict[Any, int] = {}
    for key, row in found["coverage_windows"].items():
        place = (*key[:4], "skipped" in key)  # a skipped tick is no attempt
        outcomes[place] = outcomes.get(place, 0) + row["outcome_us"]
    assert outcomes
    assert max(outcomes.values()) <= WINDOW
    labelled = found["labelled_windows"].values()
    assert labelled
    assert max(row["series_seen_us"] for row in labelled) <= WINDOW
    for row in found["partitions_windows"].values():
        assert row["series_seen_us"] <= WINDOW * row["series"]


@pytest.mark.edge(3)
def test_second_agent_adds_nothing_to_a_fleet(program: run_in_duckdb.Program):
    """Whatever an agent tells, another one that tells the same changes no figure."""
    one = by("a", told(last=600))
    other = by("z", one)
    every = {
        f"from {first}": together((one, replace(other, runs=other.runs[first::2])))
        for first in range(3)
    }
    found = rolled_up(program, of_clusters({**every, "alone": one}))
    alone = figures(of_cluster(found, "alone"))
    assert alone["sources"], "no figure proves nothing"
    assert [name for name in every if figures(of_cluster(found, name)) != alone] == []


def test_by_key_keeps_rejected_rows_apart(program: run_in_duckdb.Program):
    alone = told()
    rows = by_key(one_call(together((alone, by("z", alone)))).roll_up(program))["rejected"]
    assert {row["agent"] for row in rows.values()} == {"z"}
