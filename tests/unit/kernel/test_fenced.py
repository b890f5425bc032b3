"""A fenced broker's claims are not observed: no sum is less unknown than the union of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.slo.combined_statements import expected_us
from tests.kernel_inputs import of_clusters, together
from tests.kernel_tables import bronze, of_cluster, rolled_up
from tests.lake_builder import Batch
from tests.oracle import claims, doubled, fleets, stories
from tests.oracle.promises import partitions_told

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.kernel import run_in_duckdb
    from tests.oracle.plain import Rows

SECOND = 1_000_000
WINDOW = 300 * SECOND
ISR, FENCED = "kafka.partition.under_min_isr", "kafka.cluster.node.fenced"
OBJECTIVES = {ISR: "each-partition", claims.UNAVAILABLE: "min-isr"}


def of_topic(claim: Callable[[Batch], None], first: float = 0, last: float = 300) -> Batch:
    """A topic of three partitions that broker-1 claims, of which others say that it is fenced."""
    batch = Batch()
    batch.run("kafka.topic.partitions", 0, 300, 3.0, topic="t", source="broker-2")
    batch.run(FENCED, first, last, 1.0, source="broker-2", labels=[("node", "broker-1")])
    claim(batch)
    return batch


def folded(batch: Batch) -> None:
    batch.zeros(ISR, 0, 300, topic="t", partitions=[0, 1, 2])


def single(batch: Batch) -> None:
    for partition in range(3):
        batch.run(ISR, 0, 300, 0.0, topic="t", partition=partition)


def shared(batch: Batch) -> None:
    """Two partitions are those of a broker that is not fenced."""
    batch.zeros(ISR, 0, 300, topic="t", partitions=[0, 1], source="broker-2")
    batch.run(ISR, 0, 300, 0.0, topic="t", partition=2)


def led_anew(batch: Batch) -> None:
    """Another broker leads all of them by now."""
    folded(batch)
    batch.zeros(ISR, 0, 300, topic="t", partitions=[0, 1, 2], source="broker-2")


def by_two_agents(batch: Batch) -> None:
    folded(batch)
    batch.agent = "agent-2"
    folded(batch)


def bad(batch: Batch) -> None:
    """One that it says is under its min ISR is bad; the others are not known."""
    batch.zeros(ISR, 0, 300, topic="t", partitions=[0, 1])
    batch.run(ISR, 0, 300, 1.0, topic="t", partition=2)


def one_partition(batch: Batch) -> None:
    batch.run(ISR, 0, 100, 1.0, topic="t", partition=0)
    batch.run(ISR, 100, 300, 0.0, topic="t", partition=0)


def leaderless(batch: Batch) -> None:
    batch.run(claims.LEADERLESS, 0, 300, 0.0, topic="t", partition=0)


CASES: dict[str, tuple[Callable[[Batch], None], float, float, int]] = {
    "folded partitions": (folded, 0, 300, 0),
    "partitions in rows of their own": (single, 0, 300, 0),
    "fenced in part of a window": (folded, 100, 160, 3 * 240),
    "partitions of two brokers": (shared, 0, 300, 2 * 300),
    "another broker leads by now": (led_anew, 0, 300, 0),
    "two agents of the broker": (by_two_agents, 0, 300, 0),
    "a bad one is observed": (bad, 0, 300, 300),
}
"""A claim, from when to when its broker is fenced, and the partition-time that is observed."""


@pytest.fixture(scope="module")
def of_cases(program: run_in_duckdb.Program) -> dict[str, Rows]:
    """Return gold of all cases, each in a cluster of its name."""
    every = {name: of_topic(*case[:3]) for name, case in CASES.items()}
    every |= {"one partition": of_topic(one_partition), "leaderless": of_topic(leaderless)}
    return rolled_up(program, of_clusters(every))


@pytest.mark.edge(9)
@pytest.mark.parametrize("case", CASES)
def test_claim_of_a_fenced_broker_is_unknown(of_cases: dict[str, Rows], case: str):
    found = of_cluster(of_cases, case)
    observed = {key[2]: row["series_seen_us"] for key, row in found["topics_windows"].items()}
    assert observed == dict.fromkeys((ISR, claims.UNAVAILABLE), CASES[case][3] * SECOND)
    for row in found["partitions_windows"].values():
        assert row["series_seen_us"] == WINDOW


@pytest.mark.edge(9)
def test_bad_partition_keeps_its_own_time_only(of_cases: dict[str, Rows]):
    found = of_cluster(of_cases, "one partition")
    assert {row["series_seen_us"] for row in found["partitions_windows"].values()} == {100 * SECOND}


def test_leaderless_claims_are_not_of_a_leader(of_cases: dict[str, Rows]):
    """What a broker's agent asks the cluster is no claim of the broker's to lead."""
    found = of_cluster(of_cases, "leaderless")
    assert [row["series_seen_us"] for row in found["topics_windows"].values()] == [WINDOW]


FLEETS = {
    "fleets": lambda: map(fleets.fleet, range(40)),
    "doubles": lambda: map(doubled.fleet, range(20)),
    "stories": stories.all_stories,
}


@pytest.mark.edge(9)
@pytest.mark.parametrize("kind", FLEETS)
def test_sum_is_no_less_unknown_than_union(program: run_in_duckdb.Program, kind: str):
    batch = together(FLEETS[kind]())
    usable = [one for one in bronze(batch).usable() if one.level in ("partition", "topic")]
    reported, found = partitions_told(usable), rolled_up(program, batch)
    judged = 0
    for (cluster, window, metric, topic), row in found["topics_windows"].items():
        if metric in OBJECTIVES and row["series_affected_us"] is not None:
            sli = of(found, (cluster, window, OBJECTIVES[metric], topic, None, None, None, None))
            known = {row["series"]: sli["seen_us"]} if sli["seen_us"] else {}
            told = reported(cluster, window, topic)
            expected = expected_us(WINDOW, known, row["series"], told and int(told)) or 0
            union = WINDOW - sli["good_us"] - sli["bad_us"]
            assert expected - row["series_seen_us"] >= union, (cluster, window, metric, topic)
            judged += union > 0
    assert judged


def of(found: dict[str, Rows], key: tuple[Any, ...]) -> dict[str, Any]:
    """The row of gold/sli_windows; where there is none the hour was good, or nothing is known."""
    hour = (key[0], key[1] - key[1] % (12 * WINDOW), *key[2:])
    good = found["sli"].get(hour, {"good_us": 0})["good_us"] == 12 * WINDOW
    absent = {"good_us": WINDOW, "bad_us": 0, "seen_us": WINDOW} if good else dict.fromkeys(
        ("good_us", "bad_us", "seen_us"), 0
    )  # fmt: skip
    return found["sli_windows"].get(key, absent)
