"""For how long a group has been behind: bounds that hold the truth, and little to remember."""

from __future__ import annotations

import random
from bisect import bisect_right
from typing import TYPE_CHECKING

import pytest

from collector.model import Commit, Partition, Series
from collector.sources.admin.consumer_lag import TIME_LAG_HIGH, TIME_LAG_LOW, LogEnds

if TYPE_CHECKING:
    from collections.abc import Mapping

P, Q = Partition("t", 0), Partition("t", 1)
OF_P, OF_Q = Commit("g", "t", 0), Commit("g", "t", 1)
IDS = {"t": "id"}
HOUR = 3600.0
NOT_KNOWN = object()


class Scraped:
    """Log ends, read every 30 seconds, each time within 0.2 seconds."""

    def __init__(self) -> None:
        self.log_ends, self.now = LogEnds(), 1000.0

    def read(
        self,
        positions: Mapping[Commit, int | None],
        ends: Mapping[Partition, int],
        ids: Mapping[str, str] = IDS,
        after: float = 30.0,
    ) -> tuple[object, object]:
        self.now += after
        values = self.log_ends.time_lags(positions, ends, ids, (self.now, self.now + 0.2))
        return tuple(  # type: ignore[return-value]
            values[bound].get(Series(bound, "t", group="g"), NOT_KNOWN)
            for bound in (TIME_LAG_LOW, TIME_LAG_HIGH)
        )


def test_a_group_that_reads_within_an_interval_has_the_same_bounds_at_every_scrape() -> None:
    scraped = Scraped()
    assert scraped.read({OF_P: 100}, {P: 100}) == (0, None), "of before nothing is known"
    for end, position in ((200, 100), (200, 200), (300, 250), (300, 300), (300, 300)):
        assert scraped.read({OF_P: position}, {P: end}) == (0, 75)


def test_the_age_of_the_first_record_to_read_is_between_two_scrapes() -> None:
    scraped = Scraped()
    for end in (100, 200, 300, 400):  # 100 came after the first and before the second scrape
        found = scraped.read({OF_P: 100}, {P: end})
    assert found == (45, 150), "59.8 seconds, and 90.2 and another interval, at the steps about"
    assert scraped.read({OF_P: 250}, {P: 500}) == (45, 150), "it has caught up by one scrape"


def test_a_group_that_was_behind_at_first_has_no_upper_bound_until_it_has_read_that() -> None:
    scraped = Scraped()
    for low in (0, 20, 45, 75):
        assert scraped.read({OF_P: 10}, {P: 100}) == (low, None)
    assert scraped.read({OF_P: 100}, {P: 200}) == (0, 75)


def test_a_topic_has_the_worst_of_its_partitions() -> None:
    scraped = Scraped()
    for number in range(5):
        found = scraped.read({OF_P: 100, OF_Q: 0}, {P: 100, Q: 100 * number})
    assert found == (75, 180)
    assert scraped.read({OF_P: 90, OF_Q: 500}, {P: 100, Q: 500}) == (45, None)


@pytest.mark.parametrize("order", [(OF_P, OF_Q), (OF_Q, OF_P)])
def test_a_topic_of_which_a_partition_is_not_known_is_not_known(order: tuple[Commit, ...]) -> None:
    scraped = Scraped()
    both = dict.fromkeys(order, 100)
    scraped.read(both, {P: 100, Q: 100})
    without = {one: {OF_P: 100}.get(one) for one in order}
    assert scraped.read(without, {P: 100, Q: 100}) == (NOT_KNOWN, NOT_KNOWN)
    assert scraped.read(both, {P: 100}) == (NOT_KNOWN, NOT_KNOWN)
    assert scraped.read(both, {P: 200, Q: 200}) == (0, 150), "what was seen before is remembered"


@pytest.mark.parametrize(
    ("end", "ids"), [(90, IDS), (200, {"t": "another"})], ids=["cut off", "made again"]
)
def test_nothing_is_known_of_offsets_that_are_given_again(end: int, ids: dict[str, str]) -> None:
    scraped = Scraped()
    for _ in range(3):
        scraped.read({OF_P: 50}, {P: 100})
    assert scraped.read({OF_P: 50}, {P: end}, ids) == (0, None)


def test_a_group_that_goes_back_before_what_is_remembered_has_no_upper_bound() -> None:
    scraped = Scraped()
    for end in range(100, 2000, 100):
        scraped.read({OF_P: end}, {P: end})
    assert scraped.read({OF_P: 150}, {P: 1900}) == (45, None)


def test_the_longer_ago_the_fewer_scrapes_are_remembered() -> None:
    scraped = Scraped()
    for number in range(20_000):  # a week
        found = scraped.read({OF_P: 1}, {P: number})
    assert found == (6 * 24 * HOUR, 7 * 24 * HOUR)
    (scrapes,) = scraped.log_ends._scrapes.values()
    assert len(scrapes) < 150
    scraped.read({OF_P: 20_000}, {P: 20_000})
    (scrapes,) = scraped.log_ends._scrapes.values()
    assert len(scrapes) == 2
    assert scraped.read({}, {P: 20_000})[0] is NOT_KNOWN
    assert not scraped.log_ends._scrapes, "no group reads it any more"


def test_a_log_in_which_nothing_happens_is_remembered_by_its_ends() -> None:
    scraped = Scraped()
    for number in range(1000):
        scraped.read({OF_P: 0}, {P: 5 if number else 0})
    (scrapes,) = scraped.log_ends._scrapes.values()
    assert len(scrapes) <= 5


@pytest.mark.parametrize("seed", range(30))
def test_the_bounds_hold_the_truth_until_the_next_scrape(seed: int) -> None:
    """Records arrive, and a group reads, by chance; each scrape takes a while."""
    dice = random.Random(seed)
    scraped, arrived, position, checked = Scraped(), [0.0], 0, 0
    pace, reads = dice.choice((0.5, 5.0, 60.0)), dice.choice((0.2, 0.6, 1.0))
    before: tuple[float, float | None, float] | None = None
    for _ in range(400):
        after = dice.choice((30.0, 30.0, 30.0, 31.0))
        while arrived[-1] < scraped.now + after + 0.2:
            arrived.append(arrived[-1] + dice.expovariate(1 / pace))
        now = scraped.now + after
        if before is not None and before[1] is not None and position < bisect_right(arrived, now):
            assert now - arrived[position] <= before[1], "just before the next scrape"
        there = bisect_right(arrived, now)
        if dice.random() < reads:
            position = min(there, position + dice.randrange(max(2, round(80 / pace))))
        end = bisect_right(arrived, now + dice.random() * 0.2)
        low, high = scraped.read({OF_P: position}, {P: end}, after=after)
        age = max(0.0, now + 0.2 - arrived[position]) if position < end else 0.0
        assert isinstance(low, float)
        assert low <= age
        assert high is None or (isinstance(high, float) and age <= high)
        before, checked = (low, high, age), checked + (high is not None)  # type: ignore[assignment]
    assert checked > 100
