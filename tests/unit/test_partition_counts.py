"""Partition metrics that differ from the broker's own counts are unknown, unless leaders moved."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from collector import catalogue
from collector.agent.removed_values import HIDDEN, PartitionCounts
from collector.agent.scrape_attempt import Scraper
from collector.encoding.encoder import Encoder
from collector.model import Answer, Identity, Reading, Series

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.catalogue import Family
    from collector.model import Notice, Scrape

MIN_ISR: Final = catalogue.load().family("min_isr")
UNDER, AT = "kafka.partition.under_min_isr", "kafka.partition.at_min_isr"
COUNT: Final = {
    UNDER: "kafka.broker.under_min_isr_partitions",
    AT: "kafka.broker.at_min_isr_partitions",
}
LEADERS: Final = "kafka.broker.led_partitions"
EVERY_US: Final = 10_000_000
EIGHT: Final = frozenset(range(8))


def partitions(metric: str, led: Iterable[int], above: Iterable[int] = ()) -> Reading:
    found = {number: Series(metric, "orders", number) for number in led}
    values = {found[one]: 1.0 for one in above if one in found}
    return Reading(metric, "gauge", frozenset(found.values()) - values.keys(), dict(values))


def count(metric: str, number: float | None) -> Reading:
    series = Series(metric)
    if number is None:
        return Reading(metric, "gauge")
    zeros = frozenset() if number else frozenset({series})
    return Reading(metric, "gauge", zeros, {series: number} if number else {})


def answer(
    led: Iterable[int] = EIGHT,
    *,
    leaders: float | None = 8,
    under: Iterable[int] = (),
    unders: float | None = None,
    ats: float | None = 0,
) -> Answer:
    """Return a response whose counts and partitions are equal except for the arguments."""
    led, under = frozenset(led), frozenset(under)
    shown = len(under & led) if unders is None else unders
    return Answer(
        (
            partitions(UNDER, led, under),
            partitions(AT, led),
            count(COUNT[UNDER], shown),
            count(COUNT[AT], ats),
            count(LEADERS, leaders),
        ),
        20,
    )


class FakeSource:
    """Gives prepared answers, one after another."""

    def __init__(self, answers: Iterable[Answer], version: str | None = "4.3.1") -> None:
        self._answers, self._version = iter(answers), version

    def identify(self) -> Identity:
        return Identity("c", "1", self._version, 1)

    def read(self, family: Family) -> Answer:  # noqa: ARG002 - as sources are called
        return next(self._answers)

    def close(self) -> None:
        return


class FakeClock:
    """Ten seconds between two answers, and ten milliseconds for each."""

    def __init__(self) -> None:
        self.now_us, self._asked = 1_000_000_000_000_000, False

    def wall_us(self) -> int:
        self._asked = not self._asked
        self.now_us += EVERY_US - 10_000 if self._asked else 10_000
        return self.now_us

    steady_us = wall_us


def scrapes(
    answers: list[Answer], family: Family = MIN_ISR, version: str | None = "4.3.1"
) -> list[Scrape]:
    scraper = Scraper(FakeSource(answers, version), FakeClock())
    return [scraper.attempt(family, EVERY_US) for _ in answers]


def outcomes(found: list[Scrape]) -> str:
    return "".join("." if one.outcome == "ok" else "?" for one in found)


def events(found: list[Scrape]) -> list[Notice]:
    return [notice for one in found if one.answer for notice in one.answer.notices]


FOUR: Final = frozenset(range(4))
HIDES: Final = {
    "half of the topics": (answer(FOUR), "leads 8 partitions and kafka.partition.under_min_isr"),
    "a topic's one partition": (answer(range(7)), "leads 8 partitions"),
    "InSyncReplicasCount": (answer(()), "InSyncReplicasCount, which shows the leaders, is hidden"),
    "the one that is under": (answer(unders=1), "counts 1 .* and kafka.partition.under_min_isr"),
    "the one that is at": (answer(ats=3), "counts 3 .* and kafka.partition.at_min_isr shows 0"),
    "LeaderCount": (answer(leaders=None), "LeaderCount is hidden"),
    "beans of followers as well": (answer(range(12)), "has 12"),
    "under, in a topic that is led": (answer(FOUR, under={0}, unders=4), "leads 8"),
}


@pytest.mark.edge(5)
@pytest.mark.parametrize("hidden", HIDES, ids=str)
def test_counts_that_differ_twice_end_coverage(hidden: str) -> None:
    part, why = HIDES[hidden]
    found = scrapes([answer(), part, part, part, answer(), answer()])
    assert outcomes(found) == "..??.."
    assert found[2].error is not None
    assert re.search(why, found[2].error)
    assert found[2].answer is not None
    kept = {one.metric for one in found[2].answer.readings}
    assert kept == {COUNT[UNDER], COUNT[AT], LEADERS}, "the broker's own counts stay"
    begun, over = events(found)
    assert (begun.kind, begun.new, over.new) == (HIDDEN, found[2].error, "")


@pytest.mark.edge(5)
@pytest.mark.parametrize("hidden", HIDES, ids=str)
def test_counts_that_never_agreed_are_unknown_at_once(hidden: str) -> None:
    part, _ = HIDES[hidden]
    found = scrapes([part, part, part])
    assert outcomes(found) == "???"
    assert len(events(found)) == 1


@pytest.mark.edge(5)
def test_one_part_between_two_equal_answers_is_unknown() -> None:
    found = scrapes([answer(), answer(FOUR), answer(), answer()])
    assert outcomes(found) == "..?."
    begun, over = events(found)
    assert "leads 8" in str(begun.new)
    assert over.new == ""


@pytest.mark.edge(5)
def test_the_same_page_again_is_no_second_answer() -> None:
    counts, part = PartitionCounts(), answer(FOUR)
    counts.checked(answer(), MIN_ISR, None, 0, 10)
    assert counts.checked(part, MIN_ISR, None, 20, 30)[1] is None
    assert counts.checked(part, MIN_ISR, None, 20, 31)[1] is None
    assert counts.checked(part, MIN_ISR, None, 40, 41)[1] is not None


def moving(
    rng: random.Random, before: frozenset[int], after: frozenset[int], under: frozenset[int]
) -> Answer:
    """An answer while leaders move: each partition and each count is of before or after it."""

    def some() -> frozenset[int]:
        return (before & after) | {one for one in before ^ after if rng.random() < 0.5}

    return Answer(
        (
            partitions(UNDER, some(), under),
            partitions(AT, some()),
            count(COUNT[UNDER], len(under & some())),
            count(COUNT[AT], 0),
            count(LEADERS, len(some())),
        ),
        20,
    )


@pytest.mark.edge(5)
@pytest.mark.parametrize("seed", range(20))
def test_leaders_that_move_make_no_unknown_time(seed: int) -> None:
    """Each response can be read during a move, and some moves keep the number of leaders.

    No leader moves twice within three responses: that looks like a hidden partition.
    """
    rng, led = random.Random(seed), EIGHT
    before: list[frozenset[int]] = []
    answers = [answer()]
    for _ in range(300):
        before = [*before[-2:], led]
        others = [one for one in range(60) if not any(one in some for some in before)]
        stable = sorted(led.intersection(*before))
        gone = rng.sample(stable, min(rng.randrange(3), len(stable)))
        new = (led - set(gone)) | set(rng.sample(others, rng.randrange(3)))
        under = frozenset(rng.sample(sorted(led | new), min(rng.randrange(3), len(led | new))))
        answers.append(moving(rng, led, new, under))
        led = new
        if rng.random() < 0.5:
            answers.append(answer(led, leaders=len(led)))
    found = scrapes(answers)
    assert outcomes(found).count("?") == 0
    assert not events(found)


@pytest.mark.edge(5)
def test_leaders_that_never_cease_to_differ_are_a_part() -> None:
    """One topic is hidden on a broker whose leaders move before each answer."""
    answers = [answer()] + [answer(range(3 + n), leaders=8 + n) for n in range(36)]
    assert outcomes(scrapes(answers)).lstrip(".") == "?" * 6


@pytest.mark.parametrize(
    ("version", "expected"), [("2.2.0", "..."), ("2.3.0", "???"), (None, "???")]
)
def test_a_bean_that_the_version_lacks_is_no_part(version: str | None, expected: str) -> None:
    old = answer()
    old = replace(old, readings=tuple(r for r in old.readings if r.metric not in (AT, COUNT[AT])))
    assert outcomes(scrapes([old] * 3, version=version)) == expected


def test_a_catalogue_of_some_topics_is_not_checked() -> None:
    chosen = tuple(
        msgspec.structs.replace(one, object=one.object.replace("topic=*", "topic=orders"))
        if one.led and one.object
        else one
        for one in MIN_ISR.metrics
    )
    some = msgspec.structs.replace(MIN_ISR, metrics=chosen)
    assert outcomes(scrapes([answer(FOUR)] * 3, some)) == "..."


@pytest.mark.edge(5)
def test_the_family_of_replication_is_checked_by_its_own_count() -> None:
    family = catalogue.load().family("replication")
    name, counted = "kafka.partition.under_replicated", "kafka.broker.under_replicated_partitions"
    whole = Answer((partitions(name, FOUR), count(counted, 0)), 5)
    part = Answer((partitions(name, FOUR), count(counted, 2)), 5)
    assert outcomes(scrapes([whole, part, part, whole], family)) == "..?."


@pytest.mark.edge(5)
def test_the_time_of_a_part_has_no_runs_of_partitions() -> None:
    encoder = Encoder(300_000_000)
    found = scrapes([answer(under={1}), answer(under={1})] + [answer(FOUR, unders=1)] * 40)
    for one in found:
        assert encoder.accepts(one)
        encoder.record(one)
    rows = encoder.flush(found[-1].answered_us)
    first_us = found[3].asked_us
    partition_runs = [one for one in rows.runs if one.series.metric in (UNDER, AT)]
    assert partition_runs
    assert max(one.end for one in partition_runs) <= first_us
    counts = [one for one in rows.runs if one.series.metric == COUNT[UNDER]]
    assert max(one.end for one in counts) > first_us + 30 * EVERY_US
    unknown = [one for one in rows.accounts if one.outcome == "error"]
    assert min(one.start for one in unknown) == first_us
    assert all(one.error and "leads 8" in one.error for one in unknown)
    windows = [(one.start // 300_000_000, (one.end - 1) // 300_000_000) for one in rows.accounts]
    assert all(first == last for first, last in windows), "no row crosses a window"
