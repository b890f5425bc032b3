"""An attempt is recorded whatever happens in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import catalogue
from collector.clock import SystemClock
from collector.samples import Answer, Identity
from collector.scraper import Scraper

if TYPE_CHECKING:
    from collector.catalogue import Family

FAMILY = catalogue.load().family("min_isr")


class FakeSource:
    def __init__(self, error: Exception) -> None:
        self.error = error
        self.closed = 0

    def identify(self) -> Identity:
        return Identity("c", "1", None, 1)

    def read(self, family: Family) -> Answer:  # noqa: ARG002 - as sources are called
        raise self.error

    def close(self) -> None:
        self.closed += 1


def test_an_error_that_nobody_foresaw_is_a_failed_attempt_and_gives_up_the_source() -> None:
    source = FakeSource(KeyError("at\nonce"))
    scrape = Scraper(source, SystemClock()).attempt(FAMILY, 10_000_000)
    assert (scrape.outcome, scrape.answer) == ("error", None)
    assert scrape.error == "unexpected KeyError: 'at\\nonce'"
    assert source.closed == 1
