"""Batches of a rollup: every hour once, in order, within bounds; and their calls of the kernel."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from hypothesis import given, strategies as st

from lakehouse.engines.rollup_batches import Batch, Call, ClusterHour, Versions, batches

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
) -> list[Batch]:
    return batches(rows, rows.keys(), barred, Versions(1, 1, 1), 300, most, part)


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


def calls(*rows: int) -> tuple[Call, ...]:
    (batch,) = made({pair("a", hour): count for hour, count in enumerate(rows)}, part=120)
    return batch.calls


def test_hours_with_few_rows_share_a_call_and_one_with_many_is_cut() -> None:
    together = Call(tuple(pair("a", hour) for hour in (0, 1)))
    assert calls(50, 70, 60) == (together, Call((pair("a", 2),)))
    assert calls(121) == (Call((pair("a", 0),), 11),), "of the hour's windows, twelve in all"
    assert calls(1200) == (Call((pair("a", 0),), 1),)
    assert calls(3601) == (Call((pair("a", 0),), 1, 3),), "a window has 300 rows"
