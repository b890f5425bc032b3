"""Stretches of a rollup: every hour once, in order, within bounds."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from lakehouse.stretches import stretches
from lakehouse.units import Pair

if TYPE_CHECKING:
    from collections.abc import Iterable

BASE = dt.datetime(2026, 11, 14, 20, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def pair(cluster: str, hour: int) -> Pair:
    return Pair(cluster, BASE + hour * HOUR)


def pairs_of(found: Iterable[object]) -> list[Pair]:
    return [one for stretch in found for one in stretch.units.pairs]  # type: ignore[attr-defined]


PAIRS = st.builds(pair, st.sampled_from("abcdef"), st.integers(0, 90))


@given(
    st.dictionaries(PAIRS, st.integers(0, 50), max_size=120),
    st.frozensets(PAIRS, max_size=30),
    st.integers(1, 200),
)
def test_every_hour_is_in_one_stretch_and_none_that_is_barred(
    rows: dict[Pair, int], barred: frozenset[Pair], most: int
) -> None:
    wanted = {one: count for one, count in rows.items() if one not in barred}
    found = stretches(wanted, barred, most)
    made = pairs_of(found)
    assert set(made) >= wanted.keys()
    assert barred.isdisjoint(made)
    assert sum(stretch.rows for stretch in found) == sum(wanted.values())
    for stretch in found:
        assert stretch.rows <= most or len(stretch.units.hours) == 1
        assert list(stretch.units.hours) == sorted(set(stretch.units.hours))
    assert len(made) == len(set(made)), "no hour of a cluster is recomputed twice"
    assert len(made) <= 2 * len(wanted) + 12 * 6, "and few that nothing new touches"


def test_clusters_of_like_hours_go_together() -> None:
    rows = {pair(cluster, hour): 1 for cluster in "abc" for hour in (5, 6)} | {pair("b", 4): 1}
    (stretch,) = stretches(rows)
    assert stretch.units.clusters == ("a", "b", "c")
    assert len(stretch.units.hours) == 3


def test_a_backlog_of_one_cluster_does_not_recompute_the_others() -> None:
    rows = {pair(cluster, 90): 1 for cluster in "abcdefgh"}
    rows |= {pair("z", hour): 1 for hour in range(72)}
    found = stretches(rows)
    assert {stretch.units.clusters for stretch in found} == {tuple("abcdefgh"), ("z",)}


def test_a_year_is_cut_at_dates_and_a_full_date_at_hours() -> None:
    rows = {pair("a", hour): 10 for hour in range(4, 24 * 5 + 4)}
    days = stretches(rows, most_rows=500)
    assert [len(stretch.units.dates) for stretch in days] == [2, 2, 1]
    assert all(stretch.units.hours[0].hour == 0 for stretch in days)
    hours = stretches(rows, most_rows=100)
    assert max(len(stretch.units.hours) for stretch in hours) == 10
    first = [stretch.units.hours[0] for stretch in hours]
    assert first == sorted(first)


def test_nothing_new_is_no_stretch() -> None:
    assert stretches({}) == []
