"""The state of one family on one source: its tracks, its attempts, and since when it is covered."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Final, Self

import msgspec

from collector.catalogue.entries import Delays
from collector.encoding.attempts import AttemptTrack
from collector.encoding.closed_runs import Ledger
from collector.encoding.counter import CounterTrack
from collector.encoding.expired_offsets import HIGH, LOW
from collector.encoding.gauge import GaugeTrack
from collector.model import Reading, Scrape

HOLD_US: Final = 3_600_000_000
"""How long a silent exact family keeps its windows open, because its history may still arrive."""


class FamilyTrack(msgspec.Struct):
    """The state of one family on one source; times in microseconds.

    Attributes:
        answered_us: When the last successful scrape was answered; None without coverage.
        attempted_us: When the last attempt was asked.
        cut_us: Start of the window that is open.
        exact: Its scrapes are moments of an exact history: the time between two is known, whatever
            its length, and that after the last is not. Instants are those of another clock.
        exact_pieces: Pieces of an exact family, which has its own time to be sealed.
        sealed_us: Of an exact family: what starts before this instant is final.
        heard_us: When an exact family last delivered a moment, by our own clock.
        failure: The last attempt at an exact family, if it failed.
    """

    max_gap_us: int
    gauges: dict[str, GaugeTrack] = msgspec.field(default_factory=dict)
    counters: dict[str, CounterTrack] = msgspec.field(default_factory=dict)
    account: AttemptTrack = msgspec.field(default_factory=AttemptTrack)
    answered_us: int | None = None
    attempted_us: int | None = None
    cut_us: int = 0
    exact: bool = False
    exact_pieces: Ledger = msgspec.field(default_factory=Ledger, name="told")
    sealed_us: int = 0
    heard_us: int = 0
    failure: Scrape | None = None

    @property
    def last_us(self) -> int:
        """When the last attempt was asked or answered, 0 before the first."""
        return max(self.attempted_us or 0, self.answered_us or 0)

    def settled_us(self, now_us: int) -> int:
        """The instant before which no attempt to come changes anything; 0: it is not known.

        An attempt may still prove that a process was down, and bring an increase that waits.
        """
        waits = any(counter.waiting for counter in self.counters.values())
        return 0 if waits or self.account.may_be_down else self._read_us(now_us)

    def _read_us(self, now_us: int) -> int:
        """The instant before which no attempt to come changes coverage or a value."""
        if self.account.open is None:  # coverage has ended: the next attempt begins anew
            return now_us
        reach_us = max((gauge.reach_us for gauge in self.gauges.values()), default=0)
        return min((self.attempted_us or 0) - reach_us, now_us)

    def end_unread(self, now_us: int, end_us: int, ledger: Ledger) -> None:
        """End coverage at the last attempt, if a later one may change what is before ``end_us``.

        The later attempt may be under way, and fail: then the time since it began was not observed.
        """
        if self.answered_us is not None and self._read_us(now_us) < end_us:
            self.break_off(ledger)

    def successor(self, end_us: int) -> Self:
        """An empty exact family that records nothing of the time before an instant."""
        sealed_us = max(end_us, self.last_us, self.sealed_us)
        return type(self)(self.max_gap_us, exact=True, heard_us=self.heard_us, sealed_us=sealed_us)

    def tracks(self) -> Iterator[GaugeTrack | CounterTrack]:
        """The tracks of all metrics."""
        yield from self.gauges.values()
        yield from self.counters.values()

    def observe(
        self, scrape: Scrape, started_us: int, delays: Mapping[str, Delays], ledger: Ledger
    ) -> None:
        """Enter what was read; a metric of which no bean is left is empty.

        Args:
            scrape: The attempt that brought it.
            started_us: When the source was started.
            delays: Per metric, by how much its bean may be late.
            ledger: Where what has ended is kept.
        """
        asked, answered = scrape.asked_us, scrape.answered_us
        read = scrape.answer.readings if scrape.answer else ()
        for reading in self._with_vanished(read) if scrape.outcome == "ok" else read:
            if reading.kind == "gauge":
                track = self.gauges.setdefault(reading.metric, GaugeTrack())
                track.delays = delays.get(reading.metric, Delays())
                track.observe(reading, asked, answered, ledger)
            else:
                counter = self.counters.setdefault(reading.metric, CounterTrack())
                counter.observe(reading, started_us, asked, answered, ledger)

    def _with_vanished(self, readings: tuple[Reading, ...]) -> Iterator[Reading]:
        """The readings, and an empty one for each metric of which no bean is left."""
        read = {(reading.metric, reading.kind) for reading in readings}
        yield from readings
        for metric in self.gauges:
            if (metric, "gauge") not in read:
                yield Reading(metric, "gauge")
        for metric in self.counters:
            if (metric, "counter") not in read and metric not in (LOW, HIGH):
                yield Reading(metric, "counter")

    def stop_unread(self, scrape: Scrape, ledger: Ledger) -> None:
        """End coverage of each metric that an attempt which failed did not read."""
        if scrape.answer is None or scrape.identity is None:
            self.stop(scrape.asked_us, ledger)
            return
        read = {reading.metric for reading in scrape.answer.readings}
        for tracks in (self.gauges, self.counters):
            for metric in tracks.keys() - read:
                tracks[metric].stop(scrape.asked_us, ledger)

    def stop(self, end_us: int, ledger: Ledger) -> None:
        """End coverage."""
        if self.answered_us is not None:
            for track in self.tracks():
                track.stop(end_us, ledger)
            self.answered_us = None

    def end(self, end_us: int, ledger: Ledger) -> None:
        """End coverage, and the account of attempts."""
        self.stop(end_us, ledger)
        self.account.stop(end_us)

    def cut(self, until_us: int, window_us: int, ledger: Ledger) -> None:
        """Cut at every window's start up to an instant."""
        last = until_us - until_us % window_us
        first = self.cut_us + window_us if self.cut_us else last
        for cut_us in range(first, last + 1, window_us) if self.account.open else ():
            for track in self.tracks():
                track.cut(cut_us, ledger)
            self.account.cut(cut_us)
        self.cut_us = max(self.cut_us, last)

    def elapse(self, now_us: int, window_us: int, ledger: Ledger, bar_us: int) -> None:
        """Let time pass without an attempt: cut, and stop where coverage has run out.

        Nothing is covered from ``bar_us`` on: that time was recorded before.
        """
        if self.attempted_us is not None:
            limit_us = min(self.last_us + self.max_gap_us, bar_us)
            if limit_us < now_us:
                self.cut(limit_us, window_us, ledger)
                self.end(limit_us, ledger)
        self.cut(now_us, window_us, ledger)

    def break_off(self, ledger: Ledger) -> None:
        """Nothing is known of the time after the last attempt; what it saw held at its instant."""
        self.end(self.last_us + 1, ledger)

    def begin_exact(self, moment: Scrape, window_us: int) -> None:
        """Take a moment: from now on this is an exact family, if it was not one yet."""
        if not self.exact:
            self.account.stop(moment.asked_us)
            self.sealed_us = moment.asked_us - moment.asked_us % window_us
            self.exact = True
        self.heard_us, self.failure = moment.tick_us, None

    def end_exact(self) -> None:
        """End coverage where the recorded history ends."""
        if self.answered_us is not None:
            self.end(self.last_us, self.exact_pieces)

    def settle(self, now_us: int, end_us: int, window_us: int) -> int:
        """Up to when an exact family can be sealed, where others are up to ``end_us``.

        After ``HOLD_US`` without a moment the missing history is not waited for: it is unknown.
        """
        last_us = self.last_us
        if now_us - self.heard_us > HOLD_US and last_us < end_us:
            self.end_exact()
            if self.failure is not None:
                failed = dataclasses.replace(self.failure, asked_us=last_us, answered_us=last_us)
                self.account.attempt(failed, self.max_gap_us)
            self.cut(end_us, window_us, self.exact_pieces)
            self.attempted_us = end_us
        return min(end_us, self.complete_windows_us(window_us))

    def complete_windows_us(self, window_us: int) -> int:
        """The end of the windows for which an exact family has delivered all moments."""
        return max(self.last_us - self.last_us % window_us, self.sealed_us)
