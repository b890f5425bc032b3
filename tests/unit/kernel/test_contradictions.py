"""Two agents on one broker: ordinary ones agree; a contradiction is neither good nor certain."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from collector.encoding.bronze_rows import Origin, batches_of
from collector.encoding.encoder import Encoder
from collector.model import Answer, Identity, Reading, Scrape, Series
from lakehouse import tables
from tests.kernel_inputs import of_clusters, together
from tests.kernel_tables import of_cluster, rolled_up
from tests.lake_builder import CLUSTER, Batch, micros
from tests.oracle import once
from tests.oracle.intervals import length, union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.kernel.run_in_duckdb import Program
    from tests.oracle.intervals import Span
    from tests.oracle.plain import Rows

ISR, SECOND, INTERVAL, LAST = "kafka.partition.under_min_isr", 1_000_000, 10, 900
SEEDS = range(40)


class Truth(NamedTuple):
    """When each partition was under its min ISR, seconds."""

    bad: dict[int, list[tuple[float, float]]]

    @property
    def any_us(self) -> int:
        spans: list[Span] = [(round(a * SECOND), round(b * SECOND))
                             for own in self.bad.values() for a, b in own]  # fmt: skip
        return length(union(spans))


def drawn(seed: int, shortest: float) -> Truth:
    """Draw partitions that stay in a state for a time at least."""
    by, bad = random.Random(seed), {}
    for partition in range(3):
        edges = [0.0]
        while edges[-1] < LAST:
            edges.append(edges[-1] + shortest + by.expovariate(1 / 60))
        bad[partition] = [(a, min(b, LAST)) for a, b in zip(edges[1::2], edges[2::2], strict=False)]
    return Truth(bad)


def read_by(agent: str, phase: float, truth: Truth, skew: float = 0.0) -> Batch:
    """Read the broker every 10 seconds with the agents' encoder; the clock is ``skew`` s ahead."""
    encoder, identity = Encoder(300 * SECOND), Identity(CLUSTER, "1", "4.3.1", micros(-3600))
    at = phase
    while at < LAST:
        series = {Series(ISR, topic="t", partition=one): any(a <= at < b for a, b in own)
                  for one, own in truth.bad.items()}  # fmt: skip
        zeros = frozenset(one for one, is_bad in series.items() if not is_bad)
        reading = Reading(ISR, "gauge", zeros, {one: 1.0 for one, bad in series.items() if bad})
        asked = micros(at + skew)
        encoder.record(
            Scrape("min_isr", asked, asked - 50_000, asked + 50_000, INTERVAL * SECOND, "ok",
                   identity, Answer((reading,), 3))
        )  # fmt: skip
        at += INTERVAL
    (batch,) = batches_of([(encoder.flush(micros(LAST)), Origin(CLUSTER, "broker-1", "test"))])
    found = {
        table.name: [dict(zip(table.column_names, (*row, agent, 1), strict=True))
                     for row in batch.rows[table.name]]
        for table in (tables.RUNS, tables.MEMBERS, tables.SCRAPES)
    }  # fmt: skip
    return Batch(agent, 1, found["runs"], found["members"], found["scrapes"])


def reasons(found: dict[str, Rows]) -> set[str]:
    return {key[2] for key in found["rejected"]}


def times(found: dict[str, Rows]) -> tuple[int, int, int]:
    """Low bound, figure and high bound of the time in which any partition was bad."""
    (row,) = (row for key, row in found["topics"].items() if ISR in key)
    low, seen, high = (row[f"affected{bound}_us"] for bound in ("_low", "", "_high"))
    return low, seen, high


@pytest.mark.parametrize("shortest", [INTERVAL + 1.0, 60.0])
def test_agents_that_read_at_other_instants_agree(program: Program, shortest: float) -> None:
    """Compare two agents while each state is longer than an interval."""
    truths = {str(seed): drawn(seed, shortest) for seed in SEEDS}
    found = rolled_up(program, of_clusters({
        name: together((read_by("b", 1.0, truth), read_by("a", 1 + int(name) % 9, truth)))
        for name, truth in truths.items()
    }))  # fmt: skip
    assert once.ANOTHER in reasons(found)
    assert once.DENIED not in reasons(found)
    for name, truth in truths.items():
        low, _, high = times(of_cluster(found, name))
        assert low <= truth.any_us <= high, name


@pytest.mark.parametrize("agents", [("a", "b"), ("b", "a")])
def test_contradiction_counts_as_bad_but_not_as_certain(
    program: Program, agents: Sequence[str]
) -> None:
    bad, good = Truth({0: [(300.0, 600.0)], 1: [], 2: []}), Truth({0: [], 1: [], 2: []})
    pair = together((read_by(agents[0], 1.0, bad), read_by(agents[1], 6.0, good)))
    found = rolled_up(program, pair)
    low, seen, high = times(found)
    assert (low, seen // SECOND, high // SECOND) == (0, 300, 310)
    assert reasons(found) == {once.ANOTHER, once.DENIED}
    sli = [row for key, row in found["sli"].items() if "leaders" in key or "min-isr" in key]
    assert all(row["bad_low_us"] == 0 for row in sli)


def test_clocks_that_differ_leave_the_middle_of_an_incident_certain(program: Program) -> None:
    truth = Truth({0: [(300.0, 600.0)], 1: [], 2: []})
    found = rolled_up(
        program, together((read_by("a", 1.0, truth), read_by("b", 1.0, truth, skew=25.0)))
    )
    low, seen, high = times(found)
    assert 240 <= low // SECOND <= 300 <= seen // SECOND <= high // SECOND <= 350
