"""Exact family: its scrapes are the moments at which an exactly known history changed.

The time between two moments is known, whatever its length. The time after the last moment is
unknown until the next one. Moments have the clock of the brokers, not the agent's clock.
"""

import dataclasses
from dataclasses import dataclass
from typing import Final

from collector.encoding.attempts import AttemptSpan
from collector.encoding.closed_runs import Ledger, Piece
from collector.encoding.family import FamilyTrack
from collector.model import Scrape

HOLD_US: Final = 3_600_000_000
"""Time for which a silent family keeps its windows open: its history may still arrive."""


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
            failed = dataclasses.replace(track.failure, asked_us=last_us, answered_us=last_us)
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
