"""State of one family on one source, polled or exact: open runs, scrape log and coverage.

A scrape of a polled family covers the time until the next scrape, at most ``max_gap_us``.

The scrapes of an exact family are the moments at which an exactly known history changed. The time
between two moments is known, whatever its length. The time after the last moment is unknown until
the next one. Moments have the clock of the brokers, not the agent's clock.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

import msgspec

from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import AttemptSpan, AttemptTrack, Ledger, Piece
from collector.encoding.expired_offsets import HIGH, LOW
from collector.encoding.metric_tracks import CounterTrack, GaugeTrack
from collector.model import Reading, Scrape

NEVER_US: Final = 1 << 62
HOLD_US: Final = 3_600_000_000
"""Time for which a silent family keeps its windows open: its history may still arrive."""


class FamilyTrack(msgspec.Struct):
    """State of one family on one source, as the spool stores it. Times are microseconds.

    Attributes:
        answered_us: Response time of the last successful scrape. None without coverage.
        attempted_us: Request time of the last scrape.
        cut_us: Start of the open window.
        exact: True for an exact family. The attributes below are only for such a family.
        exact_pieces: Its closed pieces: it closes its windows separately.
        sealed_us: End of its closed windows.
        heard_us: Time of its last moment, by the agent's clock.
        failure: The last scrape, if it failed.
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
        """Time of the last request or response. 0 before the first."""
        return max(self.attempted_us or 0, self.answered_us or 0)

    def tracks(self) -> Iterator[GaugeTrack | CounterTrack]:
        """Yield the state of every metric."""
        yield from self.gauges.values()
        yield from self.counters.values()

    def observe(
        self, scrape: Scrape, started_us: int, delays: Mapping[str, Delays], ledger: Ledger
    ) -> None:
        """Record the readings of a response. A metric without MBeans gets an empty reading.

        Args:
            scrape: The scrape with the response.
            started_us: Start time of the source.
            delays: Delay of the MBean, by metric.
            ledger: The closed pieces.
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
        """Yield the readings, and an empty reading for each metric that lost all its MBeans."""
        read = {(reading.metric, reading.kind) for reading in readings}
        yield from readings
        for metric in self.gauges:
            if (metric, "gauge") not in read:
                yield Reading(metric, "gauge")
        for metric in self.counters:
            if (metric, "counter") not in read and metric not in (LOW, HIGH):
                yield Reading(metric, "counter")

    def stop_unread(self, scrape: Scrape, ledger: Ledger) -> None:
        """End coverage of each metric that a failed scrape did not read."""
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
        """End coverage and the open interval of the scrape log."""
        self.stop(end_us, ledger)
        self.account.stop(end_us)

    def cut(self, until_us: int, window_us: int, ledger: Ledger) -> None:
        """Split open runs at every window start up to an instant."""
        last = until_us - until_us % window_us
        first = self.cut_us + window_us if self.cut_us else last
        for cut_us in range(first, last + 1, window_us) if self.account.open else ():
            for track in self.tracks():
                track.cut(cut_us, ledger)
            self.account.cut(cut_us)
        self.cut_us = max(self.cut_us, last)


class Timeline(Protocol):
    """State that all polled families of a source share: the encoder."""

    window_us: int
    ledger: Ledger
    sealed_us: int
    began_us: int
    recorded_spans: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PolledFamily:
    """A family that the agent scrapes at an interval.

    Attributes:
        track: Its state.
        shared: The state that it shares with the other polled families.
    """

    track: FamilyTrack
    shared: Timeline

    @property
    def ledger(self) -> Ledger:
        """The closed pieces."""
        return self.shared.ledger

    def accepts(self, scrape: Scrape) -> bool:
        """Return True if a scrape is in order and its time was not recorded before."""
        spans = self.shared.recorded_spans
        if spans and scrape.asked_us < self.shared.began_us:
            return False  # the clock was set while it was running
        if not max(scrape.asked_us, self.shared.sealed_us) <= scrape.answered_us:
            return False
        recorded = any(start <= scrape.answered_us < end for start, end in spans)
        return scrape.asked_us >= self.track.last_us and not recorded

    def admit(self, scrape: Scrape) -> Scrape | None:
        """Return the part of a scrape to enter. None for a skipped one."""
        asked_us = scrape.asked_us
        ends = (end for start, end in self.shared.recorded_spans if start <= asked_us < end)
        scrape = replace(scrape, asked_us=max(asked_us, self.shared.sealed_us, *ends))
        self.shared.began_us = self.shared.began_us or scrape.asked_us
        if scrape.outcome == "skipped":
            self.track.account.skip(scrape, self.shared.window_us, scrape.max_gap_us)
            return None
        # A shorter interval must not take back time that the scrape before still covers.
        self._elapse(scrape.asked_us)
        self.track.max_gap_us = scrape.max_gap_us
        return scrape

    def settled_us(self, now_us: int) -> int:
        """Return the instant before which no later scrape changes anything. 0 if unknown.

        A later scrape can prove that a process was down, and can have a delayed increase.
        """
        waits = any(counter.waiting for counter in self.track.counters.values())
        return 0 if waits or self.track.account.may_be_down else self._read_us(now_us)

    def settle(self, now_us: int, end_us: int) -> None:
        """Prepare closing the windows before an instant.

        If a later scrape could change that time, coverage ends at the last scrape: a scrape that is
        running may fail, and then the time since its start was not observed.
        """
        covered = self.track.answered_us is not None
        if covered and self.shared.sealed_us < end_us and self._read_us(now_us) < end_us:
            self.break_off()
        self._elapse(end_us)

    def break_off(self) -> None:
        """End coverage at the last scrape, whose values hold at its instant only."""
        self.track.end(self.track.last_us + 1, self.ledger)

    def finish(self, now_us: int) -> None:
        """End coverage now."""
        self._elapse(now_us)
        self.track.end(now_us, self.ledger)

    def set_clock(self) -> None:
        """Remove all instants of the old clock. Coverage has ended."""
        self.track.attempted_us, self.track.cut_us = None, 0
        for counter in self.track.counters.values():
            counter.waiting.clear()

    def give_up(self, end_us: int) -> None:
        """Record delayed increases as unknown in the windows that are about to be closed."""
        for counter in self.track.counters.values():
            counter.give_up(self.shared.sealed_us, end_us, self.shared.window_us, self.ledger)

    def _read_us(self, now_us: int) -> int:
        """Return the instant before which no later scrape changes coverage or a value."""
        if self.track.account.open is None:  # coverage has ended
            return now_us
        reach_us = max((gauge.reach_us for gauge in self.track.gauges.values()), default=0)
        return min((self.track.attempted_us or 0) - reach_us, now_us)

    def _elapse(self, now_us: int) -> None:
        """Split runs at windows up to now, and end them where coverage ran out.

        Coverage ends at the latest where the clock of today reaches a time recorded before.
        """
        track, window_us = self.track, self.shared.window_us
        if track.attempted_us is not None:
            later = (start for start, _ in self.shared.recorded_spans if start >= track.last_us)
            limit_us = min(track.last_us + track.max_gap_us, min(later, default=NEVER_US))
            if limit_us < now_us:
                track.cut(limit_us, window_us, self.ledger)
                track.end(limit_us, self.ledger)
        track.cut(now_us, window_us, self.ledger)


@dataclass(frozen=True, slots=True)
class ExactFamily:
    """A family with an exact history.

    Attributes:
        track: Its state.
        window_us: Window length.
    """

    track: FamilyTrack
    window_us: int

    @property
    def ledger(self) -> Ledger:
        """The closed pieces."""
        return self.track.exact_pieces

    @property
    def held_us(self) -> int:
        """Length of the history in windows that are not closed."""
        return self.track.last_us - self.track.sealed_us

    @property
    def complete_us(self) -> int:
        """End of the windows for which all moments have arrived."""
        last_us = self.track.last_us
        return max(last_us - last_us % self.window_us, self.track.sealed_us)

    @property
    def whole_us(self) -> int:
        """End of the history that has arrived."""
        return max(self.track.last_us, self.track.sealed_us)

    def accepts(self, scrape: Scrape) -> bool:
        """Return True for a scrape that failed, and for a moment after those recorded."""
        return not scrape.exact or scrape.asked_us >= self.whole_us

    def start(self, moment: Scrape) -> None:
        """Make a family exact at its first moment."""
        self.track.account.stop(moment.asked_us)
        self.track.sealed_us = moment.asked_us - moment.asked_us % self.window_us
        self.track.exact = True

    def admit(self, scrape: Scrape) -> Scrape | None:
        """Return a moment to enter. None for a failed scrape: the next one can still succeed."""
        self.track.max_gap_us = scrape.max_gap_us
        if not scrape.exact:
            self.track.failure = None if scrape.outcome == "skipped" else scrape
            return None
        self.track.heard_us, self.track.failure = scrape.tick_us, None
        self.track.cut(scrape.asked_us, self.window_us, self.ledger)
        return scrape

    def wait(self, now_us: int) -> None:
        """Wait from now on for the missing history."""
        self.track.heard_us = max(self.track.heard_us, now_us)

    def settle(self, now_us: int, end_us: int) -> None:
        """Prepare closing the windows before an instant.

        After ``HOLD_US`` without a moment the missing history is unknown.
        """
        track, last_us = self.track, self.track.last_us
        if now_us - track.heard_us <= HOLD_US or last_us >= end_us:
            return
        self.finish()
        if track.failure is not None:
            failed = replace(track.failure, asked_us=last_us, answered_us=last_us)
            track.account.attempt(failed, track.max_gap_us)
        track.cut(end_us, self.window_us, self.ledger)
        track.attempted_us = end_us

    def finish(self) -> None:
        """End coverage at the end of the history. Later moments can follow after the next start."""
        if self.track.answered_us is not None:
            self.track.end(self.track.last_us, self.ledger)

    def set_clock(self, step_us: int) -> None:
        """Move the instant of the agent's clock by a step of that clock."""
        self.track.heard_us += step_us

    def take(self, end_us: int) -> tuple[list[Piece], list[AttemptSpan]]:
        """Close the windows before an instant. Remove and return their pieces and scrape log."""
        track = self.track
        track.sealed_us = max(track.sealed_us, end_us)
        return self.ledger.take_before(track.sealed_us), track.account.take_before(track.sealed_us)

    def successor(self, end_us: int) -> FamilyTrack:
        """Return an empty exact family that records nothing before an instant."""
        track = self.track
        sealed_us = max(end_us, self.whole_us)
        return FamilyTrack(
            track.max_gap_us, exact=True, heard_us=track.heard_us, sealed_us=sealed_us
        )
