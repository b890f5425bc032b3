"""Recorder: stores each scrape in the journal before the next one starts, and closes windows.

After a failed write it reads the encoders back from the disk.
"""

import threading
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from collector.encoding.bronze_rows import Row
from collector.errors import SpoolError
from collector.model import Event, Scrape, Series
from collector.spool.source_states import Scope, Sealed, SourceStates, entry_of
from collector.spool.spool import Spool
from collector.spool.spool_file import Dropped
from lakehouse.tables.error_text import unexpected

_EVENTS: Final = 1_000  # that wait while the spool cannot be written
_STEP_US: Final = 1_000_000  # sources answer in any order; a clock step is larger


@dataclass(slots=True)
class _Broken:
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
        old, new = _instant(self.first_us), _instant(self.last_us)
        return [Event(self.last_us, "spool_unwritable", Series(""), old, new), *self.unwritten]


class Recorder:
    """The only writer of encoders and spool. Threads may share it.

    The windows of all sources are closed together, so that an agent with many sources has as many
    batches and commits as an agent with one source. The open data of a removed source is closed at
    its last scrape.

    The time between the last scrape on disk and the first scrape after a start is unknown, so the
    loss of the last writes does no harm.

    Args:
        spool: The spool. Its journal is replayed at once.
        scope: Sources, delays and catalogue.
        window_us: Window length.

    Attributes:
        window_us: Window length.
        found: Events of faults in the spool when it was opened.
        sealed_us: End of the windows of all sources that are in batches. 0 before the first.
        dropped_batches: Batches dropped from a full spool since the start.
        last_window: Start of the window that was closed last (0 before the first), and its rows of
            bronze/runs by metric.
        reported: Findings of the delivery since the start, by kind.

    Raises:
        SpoolError: The spool cannot be read or written.
    """

    def __init__(self, spool: Spool, scope: Scope, window_us: int) -> None:
        self._spool, self.window_us = spool, window_us
        self._lock = threading.Lock()
        self.sealed_us = self.dropped_batches = 0
        self.last_window: tuple[int, Mapping[str, int]] = (0, {})
        self.reported: Counter[str] = Counter()
        self._broken: _Broken | None = None  # None: encoders and disk are equal
        self._states = SourceStates(scope, window_us)
        self._states.encoders, unreadable = self._states.restored(*spool.recover())
        self.found = [*spool.found, *unreadable]
        self._states.break_off()
        self._states.tell(*self.found)
        self._keep(self._states.retire() | self._states.cut_windows())

    @property
    def catalogue(self) -> str:
        """Hash of the catalogue in force."""
        return self._states.scope.catalogue

    def record(self, *scrapes: Scrape) -> None:
        """Store scrapes in one transaction. They are on disk when this returns.

        Raises:
            SpoolError: They could not be stored. The encoder does not have them.
            Exception: One of them could not be recorded. It is stored as a failed scrape.
        """
        fault: Exception | None = None
        clocked = [scrape for scrape in scrapes if not scrape.exact and scrape.outcome != "skipped"]
        with self._writing(max((scrape.answered_us for scrape in clocked), default=0)):
            entries: list[bytes] = []
            for scrape in map(self._states.named, scrapes):
                if scrape.source not in self._states.scope.sources:
                    continue  # its source was removed while it was running
                sealed = self._states.encoders[scrape.source].before(scrape)
                if sealed is not None:
                    self._keep({scrape.source: sealed})
                    entries = []  # the stored state of the encoders includes them
                if not self._states.encoders[scrape.source].accepts(scrape):
                    continue
                try:
                    entries.append(self._taken(scrape))
                except Exception as error:  # noqa: BLE001 - one response must not stop the others
                    fault = error
                    self._spool.append(entries)
                    self._states.encoders, _ = self._states.restored(*self._spool.recover())
                    why = f"it could not be recorded: {unexpected(error)}"
                    failed = replace(scrape, outcome="error", identity=None, answer=None, error=why)
                    entries = [self._taken(failed)]
            self._spool.append(entries)
        if fault is not None:
            raise fault

    def recorded_until_us(self, family: str, source: str = "") -> int:
        """Return the end of the recorded time of a family of a source (µs). 0: nothing yet."""
        with self._lock:
            encoders = self._states.encoders
            if self._broken is not None:
                encoders, _ = self._states.restored(*self._spool.recover())
            return encoders[source or self._states.first].recorded_until_us(family)

    def lost(self) -> dict[str, dict[Series, float]]:
        """Return offsets that expired before groups read them, by source, group and topic."""
        with self._lock:
            return {name: dict(encoder.lost) for name, encoder in self._states.present.items()}

    def reconfigure(self, scope: Scope, start: Event) -> None:
        """Set a new catalogue and other sources while scrapes continue.

        Args:
            scope: Sources, delays and catalogue.
            start: First event of new sources.

        Raises:
            SpoolError: The change could not be stored and has no effect.
        """
        with self._writing(start.at):
            before = self._states.scope
            self._states.reconfigure(scope, start)
            try:
                self._keep(self._states.retire())
            except SpoolError:
                self._states.scope = before
                raise

    def begin(self, now_us: int) -> None:
        """Start with the agent.

        Raises:
            SpoolError: The start could not be stored. It is stored at the next successful write.
        """
        with self._writing(now_us):
            sealed = self._states.catch_up(now_us)
            self._states.begin(now_us)
            self._keep(sealed)

    def note(self, event: Event) -> None:
        """Store an event of the agent for each of its sources.

        Raises:
            SpoolError: The event could not be stored. It is stored at the next successful write.
        """
        with self._writing(event.at, event):
            self._states.tell(event)
            self._keep({})

    def report(self, kind: str, old: str, new: str) -> None:
        """Store a finding of the delivery as an event of now.

        Raises:
            SpoolError: The finding could not be stored.
        """
        with self._writing():
            self._states.report(kind, old, new)
            self._keep({})
        self.reported[kind] += 1

    def refused(self, batches: Dropped, why: str) -> None:
        """Store an event about batches that cannot be delivered, as ``report`` does."""
        event = _undelivered("batch_refused", batches)
        self.report(event.kind, event.old or "", f"{event.new}: {why}")

    def seal(self, now_us: int) -> bool:
        """Move final windows into batches. Return True if there were any."""
        with self._writing(now_us):
            sealed = self._states.seal(now_us)
            if not sealed:
                return False
            self._keep(sealed)
            start_us = self.sealed_us - self.window_us
            runs = (run for rows in sealed.values() for run in rows.runs if run.start >= start_us)
            self.last_window = start_us, Counter(run.series.metric for run in runs)
            return True

    def flush(self, now_us: int) -> None:
        """Move everything into batches at an orderly stop."""
        with self._writing(now_us):
            self._keep(self._states.catch_up(now_us))
            self._keep(self._states.flush(now_us))

    def step_clock(self, from_us: int, to_us: int) -> None:
        """Handle a step of the wall clock.

        Raises:
            SpoolError: The step could not be stored. If the clock was set back, a later call finds
                it.
        """
        with self._writing(from_us):
            self._keep(self._states.step_clock(from_us, to_us))

    def begin_anew(self) -> None:
        """Set a new agent ID and delete undelivered batches: the spool is an old copy.

        The lake has batches of this agent that the spool does not have. The batches of the spool
        may be in the lake.

        Raises:
            SpoolError: The ID could not be stored and has no effect.
        """
        with self._writing():
            old, new, waiting = self._spool.agent, uuid.uuid4().hex, self._spool.depth().batches
            self._states.restart(old, f"{new}, {waiting} batches deleted" if waiting else new)
            self._spool.begin_anew(self._states.snapshot(), new)
            self.sealed_us = self._states.sealed_us

    @contextmanager
    def _writing(self, at_us: int = 0, *events: Event) -> Iterator[None]:
        """Hold the lock. Restore the encoders from disk if the last write failed.

        Args:
            at_us: Time of the written data. 0 if unknown.
            events: Events to store later if this write fails.
        """
        with self._lock:
            broken = self._broken or _Broken()
            try:
                if self._broken is not None:
                    self._resume(self._broken, at_us)
                    broken = _Broken()
                self._broken = broken
                yield
                self._broken = None
            except SpoolError:
                broken.fail(at_us, *events)
                raise

    def _resume(self, broken: _Broken, now_us: int) -> None:
        """Continue from the state on disk, with events of the time since."""
        # A write first: reading everything back is useless while the disk is full.
        self._spool.remember("agent", self._spool.agent)
        self._states.encoders, unreadable = self._states.restored(*self._spool.recover())
        self._states.break_off()
        self._states.tell(*unreadable, *broken.events())
        sealed = self._states.retire()
        if now_us:
            sealed |= self._states.catch_up(now_us, _STEP_US)
            self._states.begin(now_us)
        self._keep(sealed)

    def _taken(self, scrape: Scrape) -> bytes:
        """Record a scrape in its encoder and return its journal entry."""
        encoder = self._states.encoders[scrape.source]
        entry = entry_of(scrape, encoder)
        encoder.record(scrape)
        return entry

    def _keep(self, sealed: Sealed) -> None:
        """Write final rows as batches. The journal is empty afterwards."""
        batches = self._states.batches(sealed)
        snapshot = self._states.snapshot()
        self.dropped_batches += self._spool.seal(batches, snapshot, self._rows_of_dropped)
        self.sealed_us = self._states.sealed_us

    def _rows_of_dropped(self, batches: Dropped) -> list[Row]:
        return self._states.event_rows(_undelivered("batch_dropped", batches))


def _undelivered(kind: str, batches: Dropped) -> Event:
    """Return the event of batches that do not reach the lake, at the end of their time."""
    numbers = f"{batches.first}..{batches.last}"
    span = f"{_instant(batches.from_us)}..{_instant(batches.to_us)}"
    return Event(batches.to_us, kind, Series(""), numbers, span)


def _instant(at_us: int) -> str:
    """Return an instant as text (ISO 8601, UTC)."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="microseconds")
