"""Polled family: a scrape covers the time until the next scrape, at most ``max_gap_us``."""

from dataclasses import dataclass, replace
from typing import Final, Protocol

from collector.encoding.closed_runs import Ledger
from collector.encoding.family import FamilyTrack
from collector.model import Scrape

_NEVER_US: Final = 1 << 62


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
            limit_us = min(track.last_us + track.max_gap_us, min(later, default=_NEVER_US))
            if limit_us < now_us:
                track.cut(limit_us, window_us, self.ledger)
                track.end(limit_us, self.ledger)
        track.cut(now_us, window_us, self.ledger)
