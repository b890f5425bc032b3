"""An attempt is recorded whatever happens in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from collector import catalogue
from collector.agent.scrape_attempt import Scraper
from collector.model import Answer, Identity, Moment, Reading, Series, SystemClock
from lakehouse.tables import FLAG_DISTRIBUTION, FLAG_KNOWN_WRONG

if TYPE_CHECKING:
    from collector.catalogue import Family

FAMILY = catalogue.load().family("min_isr")


class FakeSource:
    def __init__(self, error: Exception | None = None, answer: Answer | None = None) -> None:
        self.error = error
        self.answer = answer
        self.closed = 0

    def identify(self) -> Identity:
        return Identity("c", "1", None, 1)

    def read(self, family: Family) -> Answer:  # noqa: ARG002 - as sources are called
        if self.error is not None:
            raise self.error
        assert self.answer is not None
        return self.answer

    def close(self) -> None:
        self.closed += 1


def test_unexpected_error_is_failed_scrape_and_closes_source() -> None:
    source = FakeSource(KeyError("at\nonce"))
    scrape = Scraper(source, SystemClock()).attempt(FAMILY, 10_000_000)
    assert (scrape.outcome, scrape.answer) == ("error", None)
    assert scrape.error is not None
    assert scrape.error.startswith("unexpected KeyError: 'at\\nonce' (test_scrape_attempt.py:")
    assert source.closed == 1


def test_scrape_starts_at_listing_of_series() -> None:
    clock = SystemClock()
    before_us = clock.wall_us()
    answer = Answer((Reading("kafka.partition.under_min_isr", "gauge"),), 1, listed_us=9_000_000)
    scrape = Scraper(FakeSource(answer=answer), clock).attempt(FAMILY, 10_000_000)
    assert before_us - 9_000_000 <= scrape.asked_us <= scrape.answered_us - 9_000_000
    ticks = {at - at % 10_000_000 for at in (before_us, scrape.answered_us)}
    assert scrape.tick_us in ticks, "that of the attempt"


def test_metric_with_percentiles_is_flagged_for_any_source() -> None:
    """Users add metrics of their own, and the rollup knows no catalogue."""
    lag, copied = "kafka.topic.remote_copy_lag.bytes", "kafka.topic.remote_log_size.bytes"
    flagged = Reading(lag, "gauge", flags=(FLAG_KNOWN_WRONG,))
    answer = Answer((flagged, Reading(copied, "gauge")), 2, moments=(Moment(1, (flagged,)),))
    family = catalogue.load().family("tiered")
    told = Scraper(FakeSource(answer=answer), SystemClock()).attempt(family, 10_000_000).answer
    assert told is not None
    assert [one.flags for one in told.readings] == [(FLAG_KNOWN_WRONG, FLAG_DISTRIBUTION), ()]
    ((_, readings),) = told.moments
    assert readings is not None
    assert [one.flags for one in readings] == [(FLAG_KNOWN_WRONG, FLAG_DISTRIBUTION)]


def test_values_below_catalogue_minimum_are_removed() -> None:
    family = catalogue.load().family("offsets")
    lag = "kafka.group.partition_lag"
    small, large, idle = (Series(lag, "t", number, group="g") for number in range(3))
    reading = Reading(lag, "gauge", frozenset({small}), {large: 10_001.0, idle: None})
    answer = Answer((reading, replace(reading, values={large: 10_000.0})), 3)
    told = Scraper(FakeSource(answer=answer), SystemClock()).attempt(family, 10_000_000).answer
    assert told is not None
    assert [(one.zeros, one.values) for one in told.readings] == [
        (frozenset(), {large: 10_001.0, idle: None}),
        (frozenset(), {}),
    ]
