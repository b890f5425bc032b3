"""Batches of a rollup: every hour once, in order, within bounds; and their calls of the kernel."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from lakehouse.core import metrics
from lakehouse.engines.relation import select
from lakehouse.engines.rollup_batches import (
    Batch,
    Bronze,
    Call,
    ClusterHour,
    Versions,
    batches,
    inputs,
)
from lakehouse.engines.spark_engine import most_rows
from lakehouse.kernel.build_program import build_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

BASE = dt.datetime(2026, 11, 14, 20, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def pair(cluster: str, hour: int) -> ClusterHour:
    return ClusterHour(cluster, BASE + hour * HOUR)


def made(
    rows: Mapping[ClusterHour, int],
    barred: Set[ClusterHour] = frozenset(),
    most: int = 5_000,
    part: int = 50,
    cores: int = 1,
) -> list[Batch]:
    return batches(rows, rows.keys(), barred, Versions(1, 1, 1), most, cores, part)


PAIRS = st.builds(pair, st.sampled_from("abcdef"), st.integers(0, 90))


@given(
    st.dictionaries(PAIRS, st.integers(0, 50), max_size=120),
    st.frozensets(PAIRS, max_size=30),
    st.integers(1, 200),
)
def test_every_hour_is_in_one_batch_and_none_that_is_barred(
    rows: dict[ClusterHour, int], barred: frozenset[ClusterHour], most: int
) -> None:
    wanted = {one: count for one, count in rows.items() if one not in barred}
    found = made(wanted, barred, most)
    hours = [one for batch in found for one in batch.units.cluster_hours]
    assert set(hours) >= wanted.keys()
    assert barred.isdisjoint(hours)
    assert sum(batch.rows for batch in found) == sum(wanted.values())
    for batch in found:
        assert batch.rows <= most or len(batch.units.hours) == 1
        assert list(batch.units.hours) == sorted(set(batch.units.hours))
        assert sorted(one for call in batch.calls for one in call.units) == sorted(
            batch.units.cluster_hours
        )
    assert len(hours) == len(set(hours)), "no hour of a cluster is recomputed twice"
    assert len(hours) <= 2 * len(wanted) + 12 * 6, "and few that nothing new touches"


def test_clusters_of_like_hours_go_together() -> None:
    rows = {pair(cluster, hour): 1 for cluster in "abc" for hour in (5, 6)} | {pair("b", 4): 1}
    (batch,) = made(rows)
    assert batch.units.clusters == ("a", "b", "c")
    assert len(batch.units.hours) == 3


def test_a_backlog_of_one_cluster_does_not_recompute_the_others() -> None:
    rows = {pair(cluster, 90): 1 for cluster in "abcdefgh"}
    rows |= {pair("z", hour): 1 for hour in range(72)}
    found = made(rows)
    assert {batch.units.clusters for batch in found} == {tuple("abcdefgh"), ("z",)}


def test_a_year_is_cut_at_dates_and_a_full_date_at_hours() -> None:
    rows = {pair("a", hour): 10 for hour in range(4, 24 * 5 + 4)}
    days = made(rows, most=500)
    assert [len({hour.date() for hour in batch.units.hours}) for batch in days] == [2, 2, 1]
    assert all(batch.units.hours[0].hour == 0 for batch in days)
    hours = made(rows, most=100)
    assert max(len(batch.units.hours) for batch in hours) == 10
    first = [batch.units.hours[0] for batch in hours]
    assert first == sorted(first)


def test_nothing_new_is_no_batch() -> None:
    assert made({}) == []


def calls(*rows: int, cores: int = 1) -> tuple[Call, ...]:
    counted = {pair("a", hour): count for hour, count in enumerate(rows)}
    (batch,) = made(counted, most=10**9, part=120, cores=cores)
    return batch.calls


def test_hours_with_few_rows_share_a_call_and_one_with_many_is_cut() -> None:
    together = Call(tuple(pair("a", hour) for hour in (0, 1)))
    assert calls(50, 60, 20) == (together, Call((pair("a", 2),)))
    assert calls(121) == (Call((pair("a", 0),), 2),)
    assert calls(1200, 30) == (Call((pair("a", 0),), 10), Call((pair("a", 1),)))


@given(st.lists(st.integers(0, 120), min_size=1, max_size=60), st.integers(1, 16))
def test_no_call_of_several_hours_is_too_large(rows: list[int], cores: int) -> None:
    counted = {pair("a", hour): count for hour, count in enumerate(rows)}
    for call in calls(*rows, cores=cores):
        assert sum(counted[one] for one in call.units) <= 120


@pytest.mark.parametrize(
    ("rows", "cores", "number"),
    [(2_900_000, 2, 6), (2_900_000, 16, 16), (60_000, 16, 1), (150_000, 2, 2), (0, 4, 1)],
)
def test_calls_are_as_even_as_keeps_every_core_at_work(rows: int, cores: int, number: int) -> None:
    counted = {pair("a", hour): rows // 90 for hour in range(90)}
    (batch,) = batches(counted, counted.keys(), frozenset(), Versions(1, 1, 1), 10**9, cores)
    sizes = [sum(counted[one] for one in call.units) for call in batch.calls]
    assert len(sizes) == number
    assert max(sizes) - min(sizes) <= rows // 90


def test_an_hour_of_a_large_cluster_is_many_tasks_and_shares_its_batch() -> None:
    rows = {pair("large", hour): 23_000_000 for hour in range(24)}
    found = batches(rows, rows.keys(), frozenset(), Versions(1, 1, 1), most_rows(64), 64)
    assert len(found) <= 10
    assert all(call.parts == 46 for batch in found for call in batch.calls)


@pytest.mark.parametrize("name", ["a\\' OR 1=1 --", "{rows}"])
def test_described_metric_of_any_name_is_text_in_both_engines(name: str) -> None:
    """Spark escapes with a backslash, and a relation has its sources in braces."""
    (batch,) = made({pair("a", 0): 1_000}, cores=4)
    assert batch.parts > 1
    meanings = metrics.Meanings({}, {name: metrics.Traits(describes="topic")})
    rows = select("SELECT 1")
    kernel = build_program(300, BASE, (), meanings)
    for one in inputs(Bronze(rows, rows, rows), batch, kernel):
        assert name not in one.sql
        assert "\\" not in one.sql
