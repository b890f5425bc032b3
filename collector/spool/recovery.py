"""Recovery of the encoders from disk, and the record of failed writes."""

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from collector.model import Event, Series
from collector.spool import journal
from collector.spool.batch_tables import Dropped
from collector.spool.source_states import Encoders, SourceStates
from collector.spool.spool import Spool

_EVENTS: Final = 1_000  # that wait while the spool cannot be written


@dataclass(slots=True)
class Broken:
    """A write failed or is running, so encoders and disk can differ.

    Attributes:
        first_us: Time of the first failed write. 0 if unknown.
        last_us: Time of the last failed write.
        unwritten: Events to store with the next write.
    """

    first_us: int = 0
    last_us: int = 0
    unwritten: deque[Event] = field(default_factory=lambda: deque(maxlen=_EVENTS))

    def fail(self, at_us: int, *unwritten: Event) -> None:
        """Record a failed write.

        Args:
            at_us: Time of the unwritten data. 0 if unknown.
            unwritten: The events that it contained.
        """
        if at_us:
            self.first_us = min(self.first_us or at_us, at_us)
            self.last_us = max(self.last_us, at_us)
        self.unwritten.extend(unwritten)

    def events(self) -> list[Event]:
        """Return the events to store after recovery."""
        if not self.last_us:
            return [*self.unwritten]
        old, new = instant(self.first_us), instant(self.last_us)
        return [Event(self.last_us, "spool_unwritable", Series(""), old, new), *self.unwritten]


def read_back(spool: Spool, states: SourceStates) -> tuple[Encoders, list[Event]]:
    """Return the encoders on disk, and an event if a part of them is unreadable."""
    state, entries = spool.recover()
    found, unreadable = journal.replay(state, entries, states.window_us)
    encoders = states.completed(found)
    if unreadable is None:
        return encoders, []
    at_us = max((encoder.ended_us() for encoder in encoders.values()), default=0)
    return encoders, [Event(at_us, "journal_unreadable", Series(""), None, unreadable)]


def undelivered(kind: str, batches: Dropped) -> Event:
    """Return the event of batches that do not reach the lake, at the end of their time."""
    numbers = f"{batches.first}..{batches.last}"
    span = f"{instant(batches.from_us)}..{instant(batches.to_us)}"
    return Event(batches.to_us, kind, Series(""), numbers, span)


def instant(at_us: int) -> str:
    """Return an instant as text (ISO 8601, UTC)."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="microseconds")
