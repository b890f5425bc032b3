"""Intervals with their bounds, against every instant looked at by itself."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lakehouse.core.metrics import UNDER_MIN_ISR, WATCHED_OF
from lakehouse.core.objective import Objective
from lakehouse.core.periods import length, shared, union, without
from lakehouse.explain.evidence import Total, intervals
from lakehouse.explain.story import watched
from lakehouse.gold.incidents import Incident

ISR = WATCHED_OF["topic"][0]
LAG = WATCHED_OF["topic"][2]
THROTTLED = WATCHED_OF["client"][0]
LOST = WATCHED_OF["group"][0]
REFUSED = WATCHED_OF["source"][1]
SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 9)).map(lambda two: (two[0], sum(two))),
    max_size=8,
)


def seen(
    start: int, end: int, part: int | None = 0, source: str = "broker-1", *,
    metric: str = ISR.metric, lead: int = 0, tail: int = 0, worst: float = 1.0, total: float = 0.0,
    topic: str = "t", group: str | None = None,
) -> Incident:  # fmt: skip
    """An incident of a topic, of a partition of it, or of a group and a partition."""
    return Incident(
        metric, "", topic, part, None, None, group, None, start, end, lead, tail, worst, total,
        (source,),
    )  # fmt: skip


@given(SPANS)
def test_a_union_has_the_instants_of_its_spans_and_does_not_touch(spans: list[Any]) -> None:
    joined = union(spans)
    assert {i for a, b in joined for i in range(a, b)} == {i for a, b in spans for i in range(a, b)}
    assert all(one[1] < other[0] for one, other in itertools.pairwise(joined))
    assert length(spans) == sum(end - start for start, end in joined)


@given(SPANS)
def test_without_is_all_that_is_left(spans: list[Any]) -> None:
    left = without((10, 50), spans)
    covered = {i for a, b in spans for i in range(a, b)}
    assert {i for a, b in left for i in range(a, b)} == set(range(10, 50)) - covered
    assert all(start < end for start, end in left)


@given(SPANS, SPANS)
def test_shared_finds_what_overlaps(spans: list[Any], others: list[Any]) -> None:
    wide = union(spans)
    things = [seen(*span) for span in others]
    for (start, end), found in zip(wide, shared(wide, things), strict=True):
        wanted = [one for one in things if one.start < end and one.end > start]
        assert sorted(found, key=id) == sorted(wanted, key=id)


RUNS = st.lists(
    st.tuples(st.integers(20, 60), st.integers(1, 9), st.integers(0, 20), st.integers(0, 4)),
    min_size=1,
    max_size=8,
)


@given(RUNS)
def test_intervals_hold_each_instant_that_was_bad_sure_or_maybe_once(runs: list[Any]) -> None:
    incidents = [
        seen(start, start + size, part, lead=lead, tail=min(tail, size))
        for part, (start, size, lead, tail) in enumerate(runs)
    ]
    found = intervals(ISR, incidents)
    bad = {i for one in incidents for i in range(one.start, one.end)}
    sure = {i for one in incidents for i in range(one.start, one.end - one.tail_us)}
    may = {i for one in incidents for i in range(one.start - one.lead_us, one.end)}
    assert sum(one.end - one.start for one in found) == len(bad)
    assert sum(one.sure_us for one in found) == len(sure)
    assert sum(one.end - one.start + one.lead_us for one in found) == len(may)
    for one in found:
        assert one.sure_us <= one.end - one.start
        assert one.lead_us >= 0
        assert set(range(one.start - one.lead_us, one.start)) <= may - bad
        assert not sure & set(range(one.end - one.tail_us, one.end))


def test_brokers_and_partitions_side_by_side_are_one_interval() -> None:
    parts = [seen(10, 20, 0), seen(15, 30, 2, "broker-10"), seen(20, 25, 10, "broker-2")]
    (one,) = intervals(ISR, parts)
    assert (one.start, one.end, one.sure_us) == (10, 30, 20)
    assert one.worst == (2.0, 2.0)
    assert one.parts == ("0", "2", "10")
    assert one.sources == ("broker-1", "broker-2", "broker-10")


def test_a_lead_that_reaches_the_interval_before_counts_once() -> None:
    first, second = intervals(ISR, [seen(10, 20, lead=3), seen(25, 30, 1, lead=9)])
    assert (first.lead_us, second.lead_us) == (3, 5)


def test_lead_across_earlier_interval_extends_both() -> None:
    first, second = intervals(ISR, [seen(10, 20, lead=3), seen(25, 30, 1, lead=20)])
    assert (first.lead_us, second.lead_us) == (5, 5)


def test_a_total_lies_between_the_greatest_broker_and_what_gold_saw_at_once() -> None:
    lag: dict[str, Any] = {"metric": LAG.metric, "part": None}
    two = seen(0, 30, worst=5.0, **lag)._replace(sources=("broker-1", "broker-2"))
    assert intervals(LAG, [two])[0].worst == (5.0, 10.0)

    def total(start: int, most: float) -> Total:
        return Total(LAG.metric, start, 100, most)

    assert intervals(LAG, [two], [total(0, 7.0)])[0].worst == (5.0, 7.0)
    assert intervals(LAG, [two], [total(30, 7.0)])[0].worst == (5.0, 10.0)
    assert intervals(LAG, [seen(0, 20, worst=5.0, **lag)], [total(0, 99.0)])[0].worst == (5.0, 5.0)


def test_of_a_wait_the_longest_is_the_worst_whoever_made_it() -> None:
    wait: dict[str, Any] = {"metric": THROTTLED.metric, "part": None}
    both = [seen(0, 20, worst=500.0, **wait), seen(5, 9, source="b", worst=700.0, **wait)]
    assert intervals(THROTTLED, both)[0].worst == (700.0, 700.0)


def test_counters_add_up_and_two_of_them_bound_the_loss() -> None:
    low, high = LOST.names_in_bronze
    rest: dict[str, Any] = {"worst": 9.0, "group": "g", "lead": 4, "tail": 2}
    counted = [seen(0, 10, metric=high, total=30.0, **rest), seen(0, 5, metric=low, total=20.0,
               **rest)]  # fmt: skip
    (one,) = intervals(LOST, counted)
    assert one.worst == (20.0, 30.0)
    assert (one.lead_us, one.tail_us, one.parts) == (0, 0, ("t/0",))
    (one,) = intervals(REFUSED, [seen(0, 10, None, metric=REFUSED.metric, total=4.0)])
    assert one.worst == (4.0, 4.0)


def test_other_metrics_are_other_intervals() -> None:
    assert intervals(LAG, [seen(0, 10)]) == []


@pytest.mark.parametrize(
    ("above", "level", "more"), [(0.0, "topic", 1), (5.0, "topic", 0), (0.0, "group", 0)]
)
def test_what_an_objective_promises_at_zero_is_looked_for_too(
    above: float, level: Any, more: int
) -> None:
    own = Objective("own", "Own", "", level, "kafka.topic.own", above, 0.9)
    usual = len(WATCHED_OF["topic"])
    assert len(watched("topic", [own])) == usual + more
    known = Objective("isr", "ISR", "", "topic", UNDER_MIN_ISR, 0.0, 0.9)
    assert watched("topic", [known]) == WATCHED_OF["topic"]
