"""Unions, bounds and observed time against an oracle that counts seconds one by one."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse import lake as lakes
from lakehouse import rollup, slo, tables
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

METRIC = "kafka.partition.under_min_isr"
SOURCES = ("broker-1", "broker-2")
PARTITIONS = 4
WINDOW = 300
FLEETS = 60
SECOND = 1_000_000


@dataclass(frozen=True)
class Piece:
    """A run of one partition on one source; seconds within the window."""

    source: str
    partition: int
    start: int
    end: int
    value: float
    lead: int = 0
    tail: int = 0
    flags: tuple[str, ...] = ()

    @property
    def lead_edge(self) -> int:
        return 0 if tables.FLAG_PREVIOUS_POSITIVE in self.flags else self.lead

    @property
    def tail_edge(self) -> int:
        return 0 if tables.FLAG_NEXT_POSITIVE in self.flags else self.tail


def fleet(seed: int) -> list[Piece]:
    """Random claims: gaps, leader moves, stale zeros beside another's ones, all in one window."""
    rng = random.Random(seed)
    pieces = []
    for partition in range(PARTITIONS):
        bad = rng.random() < 0.6
        for source in rng.sample(SOURCES, rng.choice((1, 1, 2))):
            cuts = sorted(rng.sample(range(10, WINDOW, 10), rng.randint(0, 4)))
            for start, end in zip([0, *cuts], [*cuts, WINDOW], strict=True):
                state = rng.choice((None, 0, 0, 1)) if bad else rng.choice((None, 0, 0, 0))
                if state == 1:
                    lead, tail = rng.choice((0, 0, 7, 12)), rng.choice((0, 8, 15))
                    flags = tuple(
                        flag
                        for flag in (tables.FLAG_PREVIOUS_POSITIVE, tables.FLAG_NEXT_POSITIVE)
                        if rng.random() < 0.15
                    )
                    # Not at once with the window: such a lead lies in the window before.
                    later = start + (rng.choice((0, 0, 3)) if end - start > 3 else 0)
                    pieces.append(Piece(source, partition, later, end, 1.0, lead, tail, flags))
                elif state == 0:
                    pieces.append(Piece(source, partition, start, end, 0.0))
    return pieces


def write(batch: Batch, cluster: str, pieces: list[Piece]) -> None:
    """Rows as an agent makes them: equal zeros of a source in one row."""
    zeros = defaultdict(list)
    for p in pieces:
        if p.value:
            batch.run(
                METRIC, p.start, p.end, p.value, source=p.source, cluster=cluster, topic="t",
                partition=p.partition, lead=p.lead, tail=p.tail, flags=p.flags,
            )  # fmt: skip
        else:
            zeros[(p.source, p.start, p.end)].append(p.partition)
    for (source, start, end), partitions in zeros.items():
        batch.zeros(METRIC, start, end, "t", partitions, source=source, cluster=cluster)
    batch.run("kafka.topic.partitions", 0, WINDOW, float(PARTITIONS), cluster=cluster, topic="t")


@dataclass
class Seconds:
    """What an atom or a topic was, second by second."""

    seen: set[int] = field(default_factory=set)
    bad: set[int] = field(default_factory=set)
    sure: set[int] = field(default_factory=set)
    maybe: set[int] = field(default_factory=set)
    spill: int = 0


def seconds(pieces: list[Piece]) -> Seconds:
    """The union of pieces, by counting."""
    found = Seconds()
    positive = [p for p in pieces if p.value]
    for p in pieces:
        found.seen.update(range(p.start, p.end))
    for p in positive:
        found.bad.update(range(p.start, p.end))
        found.sure.update(range(p.start, p.end - p.tail_edge))
        found.maybe.update(range(max(0, p.start - p.lead_edge), p.end))
    if all(p.start != 0 for p in positive):
        found.spill = max((max(0, p.lead_edge - p.start) for p in positive), default=0)
    return found


def expected(pieces: list[Piece]) -> dict[str, Any]:
    """The topic's row and its partitions' rows, and its good time."""
    atoms = [seconds([p for p in pieces if p.partition == n]) for n in range(PARTITIONS)]
    whole = seconds(pieces)
    at_once = [sum(second in atom.bad for atom in atoms) for second in range(WINDOW)]
    seen = [sum(second in atom.seen for atom in atoms) for second in range(WINDOW)]
    return {
        "observed_us": sum(len(atom.seen) for atom in atoms) * SECOND,
        "positive_us": sum(len(atom.bad) for atom in atoms) * SECOND,
        "positive_low_us": sum(len(atom.sure) for atom in atoms) * SECOND,
        "positive_high_us": sum(len(atom.maybe) + atom.spill for atom in atoms) * SECOND,
        "any_us": len(whole.bad) * SECOND,
        "any_low_us": len(whole.sure) * SECOND,
        "any_high_us": (len(whole.maybe) + whole.spill) * SECOND,
        "max_concurrent": max(at_once),
        "value_seconds": float(sum(len(atom.bad) for atom in atoms)),
        "series": max(seen),
        "partitions": {
            number: (
                len(atom.seen) * SECOND,
                len(atom.bad) * SECOND,
                len(atom.sure) * SECOND,
                (len(atom.maybe) + atom.spill) * SECOND,
            )
            for number, atom in enumerate(atoms)
            if atom.bad
        },
        "good_us": sum(
            count == PARTITIONS and not bad for count, bad in zip(seen, at_once, strict=True)
        )
        * SECOND,
    }


@pytest.fixture(scope="module")
def rolled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What gold says of every fleet, each a cluster of its own in one lake."""
    root: Path = tmp_path_factory.mktemp("union")
    batch = Batch()
    for seed in range(FLEETS):
        write(batch, f"fleet-{seed}", fleet(seed))
    batch.commit(root)
    lake = lakes.at(str(root))
    rollup.rollup(spark, lake, slo.load())
    found: dict[str, Any] = {f"fleet-{seed}": {"partitions": {}} for seed in range(FLEETS)}
    of_metric = f"grain = '5m' AND metric = '{METRIC}'"
    for row in lakes.read(spark, lake, tables.TOPICS).where(of_metric).collect():
        found[row["cluster"]].update(row.asDict())
    for row in lakes.read(spark, lake, tables.PARTITIONS).where(of_metric).collect():
        found[row["cluster"]]["partitions"][row["partition"]] = (
            row["observed_us"], row["positive_us"], row["positive_low_us"], row["positive_high_us"]
        )  # fmt: skip
    for row in lakes.read(spark, lake, tables.SLI).where("objective = 'min-isr'").collect():
        found[row["cluster"]]["good_us"] = row["good_us"]
    return found


@pytest.mark.parametrize("seed", range(FLEETS))
def test_gold_equals_counting_seconds(rolled: dict[str, Any], seed: int):
    pieces = fleet(seed)
    wanted = expected(pieces)
    found = rolled[f"fleet-{seed}"]
    if not pieces:
        pytest.skip("nothing was seen of this fleet")
    assert {name: found[name] for name in wanted} == wanted


def test_the_fleets_hold_what_is_hard():
    """Without these the comparison above would prove little."""
    fleets = [fleet(seed) for seed in range(FLEETS)]
    by_two = [
        (a, b)
        for pieces in fleets
        for a in pieces
        for b in pieces
        if a.partition == b.partition
        and a.source < b.source
        and a.start < b.end
        and b.start < a.end
    ]
    assert any(a.value != b.value for a, b in by_two), "a stale zero beside a one"
    assert any(a.value == b.value == 0 for a, b in by_two), "two claims of a healthy partition"
    everything = [p for pieces in fleets for p in pieces]
    assert any(p.lead_edge > p.start > 0 for p in everything), "a lead that spills"
    assert any(p.tail_edge > p.end - p.start for p in everything), "a tail longer than its run"
