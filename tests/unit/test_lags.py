"""Lags of groups and what is not tiered yet: derived of offsets, rounded up, never guessed."""

from __future__ import annotations

import random

import pytest

from collector.model import Commit, Partition, Series
from collector.sources.admin.consumer_lag import LAG, PARTITION_LAG, bucket_end, lags
from collector.sources.admin.readings import UNTIERED, untiered
from tests.exponential_histogram import bucket_of

P, Q = Partition("t", 0), Partition("t", 1)
OF_P, OF_Q = Commit("g", "t", 0), Commit("g", "t", 1)
TOPIC = Series(LAG, "t", group="g")


@pytest.mark.parametrize(
    ("value", "end"),
    [(-3, 0), (0, 0), (1, 1), (6, 6), (7, 8), (64, 64), (65, 76), (200, 215), (1 << 40, 1 << 40)],
)
def test_a_whole_number_is_rounded_up_to_the_end_of_a_bucket(value: int, end: int) -> None:
    assert bucket_end(value) == end


def test_rounding_adds_less_than_a_fifth_and_ends_where_a_bucket_of_gold_does() -> None:
    dice = random.Random(164)
    large = (dice.randrange(1, 1 << dice.randrange(1, 50)) for _ in range(5_000))
    for value in (*range(1, 5_000), *large):
        end = bucket_end(value)
        assert value <= end < value * 1.2
        assert bucket_end(end) == end
        assert bucket_of(end * (1 + 1e-6) + 1) > bucket_of(end), "what is more is in another one"


def test_a_topic_has_the_sum_and_each_partition_its_own() -> None:
    values = lags({OF_P: 16, OF_Q: 1}, {P: 20, Q: 5}, {})
    assert values[LAG] == {TOPIC: 8.0}
    assert values[PARTITION_LAG] == {
        Series(PARTITION_LAG, "t", 0, group="g"): 4.0,
        Series(PARTITION_LAG, "t", 1, group="g"): 4.0,
    }


@pytest.mark.parametrize("order", [(OF_P, OF_Q), (OF_Q, OF_P)])
@pytest.mark.parametrize("position", [None, 0])
def test_a_sum_of_which_a_part_is_not_known_is_not_known(
    order: tuple[Commit, Commit], position: int | None
) -> None:
    positions = {one: {OF_P: 16, OF_Q: position}[one] for one in order}
    values = lags(positions, {P: 20} if position == 0 else {P: 20, Q: 9}, {})
    assert values[LAG] == {}
    assert values[PARTITION_LAG] == {Series(PARTITION_LAG, "t", 0, group="g"): 4.0}


def test_a_commit_beyond_the_end_is_no_lag() -> None:
    assert lags({OF_P: 30}, {P: 20}, {P: 25})[LAG] == {TOPIC: 0.0}


@pytest.mark.parametrize(
    ("last", "start", "local_start", "end", "told"),
    [
        (99, 0, 50, 100, 0.0),
        (89, 0, 50, 98, 8.0),
        (-1, 0, 0, 128, 128.0),  # nothing was copied yet
        (-1, 7, 7, 71, 64.0),
        (-1, 0, 50, 100, None),  # a new leader that has not looked into the remote tier
        (89, 95, 95, 99, 4.0),  # somebody deleted records beyond what was copied
        (99, 0, 50, 90, 0.0),
    ],
)
def test_what_is_not_tiered_is_what_lies_behind_the_last_copied_record(
    last: int, start: int, local_start: int, end: int, told: float | None
) -> None:
    found = untiered({P: last}, {P: start}, {P: local_start}, {P: end})
    assert found == ({} if told is None else {Series(UNTIERED, "t", 0): told})


def test_of_a_partition_that_did_not_answer_nothing_is_told() -> None:
    assert untiered({P: 5}, {}, {P: 0}, {P: 9}) == untiered({P: 5}, {P: 0}, {P: 0}, {}) == {}
    assert untiered({}, {P: 0}, {P: 0}, {P: 9}) == {}
