"""What is read twice counts once: by two agents, in two batches, or in one that is there twice."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.kernel_inputs import of_clusters, placed, together
from tests.kernel_tables import bronze, of_cluster, rolled_up
from tests.lake_builder import Batch
from tests.oracle import doubled, gold, once
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.kernel import run_in_duckdb
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


SINGLES: dict[str, Batch] = {
    "the agent's id changes at a restart": together((told("b", 0, 460), told("a", 470, 900))),
    "it follows without a hole": together((told("b", 0, 460), told("a", 460, 900))),
    "another broker": together((told("a"), told("b", source="broker-2"))),
    "a cluster as a whole": together((told("a"), told("b", source="cluster-x"))),
}
TWO_CLUSTERS = together((told("a", cluster="one"), told("b", cluster="other")))
DAYS = {
    f"a day missing and twice by {other}": together(
        (told(last=3600), by(other, told(last=3600)), told(first=7200, last=8100))
    )
    for other in ("agent-a", "agent-z")
}
OUTCOMES = ("timeout", "down", "refused", "dropped")


def of_other_families() -> Batch:
    one, other = Batch(agent="a"), Batch(agent="b")
    one.scrape("min_isr", 0, 300)
    one.counter(SHRINKS, 0, 300, 5.0)
    other.scrape("tiered", 0, 300)
    other.run(COPY_LAG, 0, 300, 6.0, topic="t")
    return together((one, other))


def beside_success(outcome: str) -> Batch:
    good, bad = Batch(agent="z"), Batch(agent="a")
    good.scrape("min_isr", 100, 300)
    bad.scrape("min_isr", 0, 250, outcome, error="no")
    return together((good, bad))


def second_agents() -> dict[str, Batch]:
    """Return rows of an agent, alone and with copies of some of them by a second agent.

    The second agent reports each partition that is bad: without it, it would contradict the first.
    """
    one = by("a", told(last=600))
    other = by("z", one)
    bad, rest = [], []
    for row in other.runs:
        (bad if row["metric"] == ISR and row["value"] else rest).append(row)
    every = {
        f"from {first}": together((one, replace(other, runs=[*bad, *rest[first::2]])))
        for first in range(3)
    }
    return {**every, "one agent": one}


@pytest.fixture(scope="module")
def of_cases(program: run_in_duckdb.Program) -> dict[str, Rows]:
    """Return gold of all cases, each in a cluster of its name."""
    alone = told()
    first = together((told("a", 0, 100), told("a", 200, 300)))
    history = told("import-prometheus", 0, 600)
    cases = {
        "alone": alone,
        **{name: together((alone, again(alone))) for name, (again, _) in DOUBLES.items()},
        **SINGLES,
        **DAYS,
        "other families": of_other_families(),
        "a hole": together((first, told("b", 0, 300))),
        "cut in part": together((told("b", 0, 205), told("a", 200, 300))),
        "history": together((told("agent", 120, 600), history)),
        **{outcome: beside_success(outcome) for outcome in OUTCOMES},
        **second_agents(),
    }
    return rolled_up(program, together((of_clusters(cases), TWO_CLUSTERS)))


@pytest.mark.edge(3)
@pytest.mark.parametrize("double", DOUBLES)
def test_double_leaves_every_figure(of_cases: dict[str, Rows], double: str):
    alone, found = told(), of_cluster(of_cases, double)
    assert figures(found) == figures(of_cluster(of_cases, "alone"))
    assert figures(found)["sources"], "no figure proves nothing"
    assert reasons(found) == {DOUBLES[double][1]: len(alone.runs) + len(alone.scrapes)}


@pytest.mark.edge(3)
@pytest.mark.parametrize("case", DAYS)
def test_day_missing_and_twice_is_no_coverage(of_cases: dict[str, Rows], case: str):
    """The first hour is there twice and the second was read by nobody."""
    found = of_cluster(of_cases, case)
    lasts = {key[1:]: row["outcome_us"] for key, row in found["coverage"].items()}
    assert sorted(set(lasts.values())) == [900 * SECOND, 3600 * SECOND]


@pytest.mark.edge(3)
@pytest.mark.parametrize("cluster", [*SINGLES, "one", "other"])
def test_no_double_sets_nothing_aside(of_cases: dict[str, Rows], cluster: str):
    found = of_cluster(of_cases, cluster)
    assert found["coverage"]
    assert reasons(found) == {}


@pytest.mark.edge(3)
def test_agent_of_other_families_is_no_double(of_cases: dict[str, Rows]):
    found = of_cluster(of_cases, "other families")
    assert reasons(found) == {}
    assert {key[3] for key in found["coverage"]} == {"min_isr", "tiered"}


@pytest.mark.edge(3)
def test_hole_of_the_first_agent_is_filled(of_cases: dict[str, Rows]):
    found = of_cluster(of_cases, "a hole")
    (gauge,) = (row for key, row in found["sources_windows"].items() if key[2] == LED)
    assert gauge["series_seen_us"] == WINDOW
    assert gauge["value_seconds"] == 900.0
    assert {row["outcome_us"] for row in found["coverage_windows"].values()} == {WINDOW}


@pytest.mark.edge(3)
def test_counter_cut_in_part_is_unknown(of_cases: dict[str, Rows]):
    """A handover with five seconds of overlap: the increase before it is not known."""
    found = of_cluster(of_cases, "cut in part")
    (counter,) = (row for key, row in found["sources_windows"].items() if key[2] == SHRINKS)
    assert (counter["increase"], counter["series_seen_us"]) == (5.0, 100 * SECOND)
    (lost,) = found["lost_offsets_windows"].values()
    assert (lost["offsets_low"], lost["series_seen_us"]) == (9.0, 100 * SECOND)
    assert lost["series_unknown_us"] == 200 * SECOND


@pytest.mark.edge(3)
def test_history_beside_an_agent_counts_once(of_cases: dict[str, Rows]):
    """An import from Prometheus, a scrape a minute, of time that an agent read as well."""
    found = of_cluster(of_cases, "history")
    for row in found["coverage_windows"].values():
        assert row["outcome_us"] == WINDOW
    lags = [row for key, row in found["groups_windows"].items() if key[2] == GROUP_LAG]
    assert [row["series_seen_us"] for row in lags] == [WINDOW] * 2


@pytest.mark.edge(3)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_success_wins_over_a_failure(of_cases: dict[str, Rows], outcome: str):
    found = of_cluster(of_cases, outcome)
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
def test_no_time_of_a_series_exceeds_its_window(found: dict[str, Rows]):
    """No guard is needed in the kernel: of a series no instant is left to two runs."""
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
@pytest.mark.parametrize("case", ["from 0", "from 1", "from 2"])
def test_second_agent_adds_nothing_to_a_fleet(of_cases: dict[str, Rows], case: str):
    """Whatever an agent tells, another one that tells the same changes no figure."""
    alone = figures(of_cluster(of_cases, "one agent"))
    assert alone["sources"], "no figure proves nothing"
    assert figures(of_cluster(of_cases, case)) == alone


def test_by_key_keeps_rejected_rows_apart(of_cases: dict[str, Rows]):
    rows = of_cluster(of_cases, "an agent with a greater id")["rejected"]
    assert {row["agent"] for row in rows.values()} == {"agent-z"}
