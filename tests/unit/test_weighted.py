"""One figure of many subjects."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, strategies as st

from lakehouse.core.objective import Level, Objective
from lakehouse.core.subjects import Subject
from lakehouse.slo.combined_statements import by_cluster, with_clusters
from lakehouse.slo.report_calendar import Maintenance
from lakehouse.slo.sla_statement import Statement, Times


def said(
    name: str, times: Times, *, expected: int = 100, partitions: float | None = None,
    cluster: str = "c", level: Level = "topic",
) -> Statement:  # fmt: skip
    attributes = {} if partitions is None else {"kafka.topic.partitions": partitions}
    names = dict.fromkeys(("topic", "user", "client_id", "group", "source")) | {level: name}
    one = Subject(cluster, level, **names, first_us=0, last_us=0, attributes=attributes)
    return Statement(Objective("o", "", "", level, "m", 0.0, 0.9), one, expected, times)


def test_a_topic_weighs_as_many_as_its_partitions():
    large = said("large", Times(100), partitions=9.0)
    small = said("small", Times(0, 100, 100, 100), partitions=1.0)
    (one,) = by_cluster([large, small])
    assert (one.weight, one.subjects) == ("partitions", 2)
    assert one.statement.attainment == 0.9
    assert one.statement.verdict == "met"
    assert one.to_json()["expected_us"] == 1000
    assert one.to_json()["topic"] is None


def test_a_topic_of_which_nobody_told_how_many_weighs_one():
    (one,) = by_cluster([said("a", Times(100)), said("b", Times(0, 100, 100, 100))])
    assert one.statement.attainment == 0.5


def test_others_weigh_alike_and_clusters_are_told_apart():
    first = said("broker-1", Times(100), level="source")
    other = said("broker-2", Times(50, 50, 50, 50), level="source")
    away = said("broker-1", Times(0, 100, 100, 100), level="source", cluster="d")
    found = {one.statement.subject.cluster: one for one in by_cluster([first, other, away])}
    assert found["c"].weight == "equal"
    assert found["c"].statement.attainment == 0.75
    assert found["d"].statement.verdict == "missed"


def test_who_was_not_seen_is_unknown_and_not_left_out():
    (one,) = by_cluster([said("a", Times(100)), said("b", Times())])
    assert one.statement.unknown_us == 100
    assert (one.statement.attainment, one.statement.attainment_low) == (1.0, 0.5)
    assert one.statement.verdict == "uncertain"


_TIMES = st.builds(
    lambda good, low, edge, more: Times(good, low + edge, low, low + edge + more),
    *[st.integers(0, 40)] * 2, *[st.integers(0, 9)] * 2,
)  # fmt: skip


@given(st.lists(st.tuples(_TIMES, st.integers(1, 50)), min_size=1, max_size=6))
def test_the_whole_lies_between_its_parts(parts: list[tuple[Times, int]]):
    own = [said(str(n), times, partitions=float(w)) for n, (times, w) in enumerate(parts)]
    (one,) = by_cluster(own)
    seen = [each for each in own if each.attainment is not None]
    if not seen:
        assert one.statement.verdict == "no_data"
        return
    told = one.statement.attainment
    assert told is not None
    assert min(each.attainment or 0.0 for each in seen) - 1e-9 <= told
    assert told <= max(each.attainment or 0.0 for each in seen) + 1e-9
    low, high = one.statement.attainment_low, one.statement.attainment_high
    assert low is not None
    assert high is not None
    assert low <= told + 1e-9
    assert told <= high + 1e-9


def test_an_objective_of_a_cluster_is_told_of_it_alone_with_its_maintenance():
    planned = Maintenance(0, 1, "disks")
    bad = said("a", Times(50, 50, 50, 50), partitions=3.0)
    bad = replace(
        bad, maintenance=(planned,), without=said("a", Times(50), expected=50, partitions=3.0)
    )
    own = [bad, said("b", Times(100), partitions=1.0)]
    of_cluster = [replace(one, objective=replace(one.objective, level="cluster")) for one in own]
    told = with_clusters([*of_cluster, said("other", Times(1))])
    assert [one.subject.kind for one in told] == ["topic", "cluster"]
    one = told[1]
    assert (one.times.bad_us, one.expected_us, one.maintenance) == (150, 400, (planned,))
    assert one.without is not None
    assert (one.without.times.bad_us, one.without.expected_us) == (0, 250)
