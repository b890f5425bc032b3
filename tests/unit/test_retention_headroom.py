"""KIP-490, before it happens: for how long retention leaves what a group has not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from collector.model import Commit, Partition
from collector.sources.admin.retention_headroom import SAFE, Headroom, headrooms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

P = Partition("t", 0)
HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000
DAY = {"t": 24 * HOUR_MS}


def log(times_ms: list[int], first: int = 0) -> Callable[[Mapping[Partition, int]], dict]:
    """What listOffsets by timestamp says of a log with these records."""

    def first_since(instants: Mapping[Partition, int]) -> dict[Partition, int]:
        (instant,) = instants.values()
        later = (first + n for n, at in enumerate(times_ms) if at >= instant)
        return {P: next(later, -1)}

    return first_since


def of(at: int, times_ms: list[int], retention: Mapping[str, float] = DAY) -> Headroom:
    group = Commit("g", "t", 0)
    return headrooms({group: at}, retention, NOW_MS, log(times_ms))[group]


@pytest.mark.parametrize(
    ("hours_old", "expected"),
    [
        pytest.param(1, SAFE, id="most of its time is left"),
        pytest.param(11.9, SAFE, id="just over half of it is left"),
        pytest.param(12.1, Headroom(8 * 3600, 12 * 3600), id="less than half"),
        pytest.param(22.5, Headroom(3600, 2 * 3600), id="an hour and a half"),
        pytest.param(23.95, Headroom(0, 300), id="three minutes"),
        pytest.param(24.1, Headroom(0, 0), id="retention takes it when its segment closes"),
    ],
)
def test_the_age_of_the_next_record_against_retention(hours_old: float, expected: Headroom):
    assert of(0, [NOW_MS - round(hours_old * HOUR_MS), NOW_MS]) == expected


def test_of_several_groups_the_one_behind_is_told_most_exactly():
    times = [NOW_MS - hours * HOUR_MS for hours in range(23, -1, -1)]
    groups = {Commit(name, "t", 0): at for name, at in (("late", 1), ("later", 0), ("soon", 20))}
    asked = 0

    def counted(instants: Mapping[Partition, int]) -> dict[Partition, int]:
        nonlocal asked
        asked += 1
        return log(times)(instants)

    found = headrooms(groups, DAY, NOW_MS, counted)
    assert found[Commit("later", "t", 0)] == Headroom(3600, 7200)
    late = found[Commit("late", "t", 0)]
    assert late.low is not None
    assert late.high is not None
    assert late.low <= 2 * 3600 <= late.high
    assert found[Commit("soon", "t", 0)] == SAFE
    assert asked <= 5


def test_a_partition_that_does_not_answer_is_left_out():
    assert headrooms({Commit("g", "t", 0): 0}, DAY, NOW_MS, lambda _: {}) == {}


@settings(max_examples=300)
@given(
    st.lists(st.integers(-30 * HOUR_MS, 0), min_size=1, max_size=30),
    st.integers(0, 29),
    st.sampled_from([HOUR_MS, 24 * HOUR_MS, 24 * 30 * HOUR_MS]),
    st.integers(1, 6),
)
def test_nothing_is_deleted_before_the_low_bound_whatever_the_order_of_the_timestamps(
    ages_ms: list[int], at: int, retention_ms: int, per_segment: int
):
    times = [NOW_MS + age for age in ages_ms]
    at = min(at, len(times) - 1)
    found = of(at, times, {"t": retention_ms})
    assert found.low is None or found.high is None or found.low <= found.high
    least = found.low if found.low is not None else min(48 * 3600, retention_ms / 2000)
    assert _deleted_at_ms(times, at, retention_ms, per_segment) >= NOW_MS + least * 1000
    if found.high is not None:
        assert times[at] + retention_ms <= NOW_MS + found.high * 1000


def _deleted_at_ms(times: list[int], at: int, retention_ms: int, per_segment: int) -> float:
    """When Kafka deletes an offset: oldest segments first, each when its newest record is too old.

    The last segment is open and stays.
    """
    closed = [times[n : n + per_segment] for n in range(0, len(times), per_segment)][:-1]
    if at // per_segment >= len(closed):
        return float("inf")
    return max(max(NOW_MS, max(one) + retention_ms) for one in closed[: at // per_segment + 1])
