"""Scrape log: the outcome of every scrape of one family, as rows of bronze/scrapes."""

from operator import attrgetter
from typing import Final

import msgspec

from collector.model import Outcome, Scrape
from collector.sources.base.error_mapping import NOTHING_LISTENS


class AttemptSpan(msgspec.Struct):
    """Interval of scrapes with the same outcome. Times are microseconds."""

    family: str
    outcome: Outcome
    start: int
    end: int
    interval_us: int
    max_gap_us: int
    kafka_version: str | None = None
    error: str | None = None
    scrapes: int = 0
    beans: int = 0
    dropped_series: int = 0
    seconds_total: float = 0.0
    seconds_max: float = 0.0


_HOW: Final = attrgetter("outcome", "error", "interval_us", "max_gap_us", "kafka_version")
"""Equal values of all scrapes in one interval."""


class AttemptTrack(msgspec.Struct):
    """Scrape log of one family: its open interval and its closed intervals."""

    open: AttemptSpan | None = None
    closed: list[AttemptSpan] = msgspec.field(default_factory=list)

    def attempt(self, scrape: Scrape, max_gap_us: int) -> None:
        """Record a scrape, at its response if it succeeded, otherwise at its request."""
        at_us = scrape.answered_us if scrape.outcome == "ok" else scrape.asked_us
        version = scrape.identity.kafka_version if scrape.identity else None
        new = AttemptSpan(
            scrape.family, scrape.outcome, at_us, at_us, scrape.interval_us, max_gap_us, version,
            scrape.error,
        )  # fmt: skip
        if self.open is None or _HOW(self.open) != _HOW(new):
            self.stop(at_us)
            if scrape.identity is not None and scrape.outcome == "ok":
                self._prove_down(min(scrape.identity.started_us, scrape.asked_us))
            self.open = new
        seconds = (scrape.answered_us - scrape.asked_us) / 1e6
        self.open.scrapes += 1
        self.open.beans += scrape.answer.beans if scrape.answer else 0
        self.open.dropped_series += scrape.answer.dropped_series if scrape.answer else 0
        self.open.seconds_total += seconds
        self.open.seconds_max = max(self.open.seconds_max, seconds)

    @property
    def may_be_down(self) -> bool:
        """True if the next success can prove that no process was running (``_prove_down``)."""
        spans = (span for span in (self.open, *reversed(self.closed)) if span is not None)
        last = next((span for span in spans if span.outcome != "skipped"), None)
        return last is not None and _found_closed(last)

    def _prove_down(self, started_us: int) -> None:
        """Set the outcome ``down`` between a closed port and the start of the next process.

        The port must have answered before, otherwise it can be the wrong port. Closed windows do
        not change.
        """
        down = []
        for account in reversed(self.closed):
            if account.outcome == "ok":
                break
            if account.outcome != "skipped" and account.start < started_us:
                if not _found_closed(account):
                    return
                down.append(account)
        else:
            return
        for account in down:
            if account.end > started_us:
                self.closed.append(_uncounted(account, started_us, account.end))
                account.end = started_us
            account.outcome = "down"

    def skip(self, scrape: Scrape, window_us: int, max_gap_us: int) -> None:
        """Record a tick without a request. It does not end a run."""
        until_us = scrape.tick_us + scrape.interval_us
        cut_us = scrape.tick_us - scrape.tick_us % window_us + window_us
        skipped = AttemptSpan(
            scrape.family, "skipped", scrape.tick_us, min(until_us, cut_us), scrape.interval_us,
            max_gap_us, error=scrape.error, scrapes=1,
        )  # fmt: skip
        self.closed.append(skipped)

    def cut(self, window_us: int) -> None:
        """Split the open interval at a window start. The new part has no scrapes yet."""
        run = self.open
        if run is not None and run.start < window_us:
            self.stop(window_us)
            self.open = _uncounted(run, window_us, window_us)

    def stop(self, end_us: int) -> None:
        """End the open interval."""
        if self.open is not None and end_us > self.open.start:
            self.open.end = end_us
            self.closed.append(self.open)
        self.open = None

    def take_before(self, instant_us: int) -> list[AttemptSpan]:
        """Remove and return the closed intervals that start before an instant."""
        taken = [account for account in self.closed if account.start < instant_us]
        self.closed = [account for account in self.closed if account.start >= instant_us]
        return taken


def _found_closed(account: AttemptSpan) -> bool:
    """Return True if the port of the process was closed."""
    return account.outcome == "refused" and NOTHING_LISTENS in (account.error or "")


def _uncounted(of: AttemptSpan, start: int, end: int) -> AttemptSpan:
    """Return an interval with the same outcome, at another time and without scrapes."""
    how = of.interval_us, of.max_gap_us, of.kafka_version, of.error
    return AttemptSpan(of.family, of.outcome, start, end, *how)
