"""The agent's own account: what became of every attempt to read one family."""

from __future__ import annotations

import msgspec

from collector.samples import Outcome, Scrape


class Account(msgspec.Struct):
    """A run of attempts that ended alike; times in microseconds."""

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


class AccountTrack(msgspec.Struct):
    """The account that is open for one family, and those that are closed."""

    open: Account | None = None
    closed: list[Account] = msgspec.field(default_factory=list)

    def attempt(self, scrape: Scrape, max_gap_us: int) -> None:
        """Enter one attempt: as it was answered where it went well, as it was asked where not."""
        at_us = scrape.answered_us if scrape.outcome == "ok" else scrape.asked_us
        version = scrape.identity.kafka_version if scrape.identity else None
        new = Account(
            scrape.family, scrape.outcome, at_us, at_us, scrape.interval_us, max_gap_us, version,
            scrape.error,
        )  # fmt: skip
        if self.open is None or not _alike(self.open, new):
            self.stop(at_us)
            self.open = new
        seconds = (scrape.answered_us - scrape.asked_us) / 1e6
        self.open.scrapes += 1
        self.open.beans += scrape.answer.beans if scrape.answer else 0
        self.open.dropped_series += scrape.answer.dropped_series if scrape.answer else 0
        self.open.seconds_total += seconds
        self.open.seconds_max = max(self.open.seconds_max, seconds)

    def skip(self, scrape: Scrape, window_us: int, max_gap_us: int) -> None:
        """Enter a tick at which nothing was asked; it is no attempt and ends no run."""
        until_us = scrape.tick_us + scrape.interval_us
        cut_us = scrape.tick_us - scrape.tick_us % window_us + window_us
        self.closed.append(
            Account(
                scrape.family,
                "skipped",
                scrape.tick_us,
                min(until_us, cut_us),
                scrape.interval_us,
                max_gap_us,
                None,
                scrape.error,
                1,
            )
        )

    def cut(self, window_us: int) -> None:
        """End the open account at a window's start and carry it over without attempts."""
        run = self.open
        if run is not None and run.start < window_us:
            self.stop(window_us)
            self.open = Account(
                run.family,
                run.outcome,
                window_us,
                window_us,
                run.interval_us,
                run.max_gap_us,
                run.kafka_version,
                run.error,
            )

    def stop(self, end_us: int) -> None:
        """End the open account."""
        if self.open is not None and end_us > self.open.start:
            self.open.end = end_us
            self.closed.append(self.open)
        self.open = None

    def take_before(self, instant_us: int) -> list[Account]:
        """Remove and return the closed accounts that start before an instant."""
        taken = [account for account in self.closed if account.start < instant_us]
        self.closed = [account for account in self.closed if account.start >= instant_us]
        return taken


def _alike(run: Account, new: Account) -> bool:
    return (run.outcome, run.error, run.interval_us, run.max_gap_us, run.kafka_version) == (
        new.outcome, new.error, new.interval_us, new.max_gap_us, new.kafka_version,
    )  # fmt: skip
