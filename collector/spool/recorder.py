"""The recorder: a scrape is in the journal before the next begins, a sealed window in batches."""

import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import Origin, Row, batches_of, event_row
from collector.encoding.encoder import Encoder, SealedRows
from collector.errors import SpoolError
from collector.model import Event, Scrape, Series
from collector.spool import journal
from collector.spool.batch_tables import Dropped
from collector.spool.spool import Spool
from lakehouse.tables.error_text import unexpected

_EVENTS: Final = 1_000  # that wait while the spool cannot be written
_STEP_US: Final = 1_000_000  # sources answer in any order; a clock that is set moves by more
Sources = Mapping[str, str | None]  # cluster id by source
DelaysOf = Mapping[str, Delays]  # by metric
Sealed = dict[str, SealedRows]  # by source
UNKNOWN_CLUSTER = "unknown"
"""Stands for the cluster of a source that never answered and whose cluster is not configured."""


class Recorder:
    """The one writer of encoders and spool; safe to call from several threads.

    Each source has an encoder of its own. All are sealed together, so that an agent of many sources
    has no more batches, and commits, than that of one. What a source that is read no more left
    behind is sealed at its last attempt; it is remembered until when that was.

    The time between the last attempt on disk and the first after a start is unknown, so a loss of
    the last writes does not matter.

    Args:
        spool: Where everything is kept; what it holds is replayed at once.
        sources: Each source that is read, as bronze calls it, and its cluster id if that is
            configured; the id that the source reports goes before it.
        window_us: Length of a window.
        delays: Per metric, by how much its bean may be late.
        catalogue: Hash of the catalogue in force.

    Attributes:
        window_us: Length of a window.
        catalogue: Hash of the catalogue in force.
        found: Events of faults that the spool had when it was opened.
        sealed_us: The end of what was sealed into batches of all sources; 0 before the first.
        dropped_batches: How many were dropped from a full spool since then.
        last_window: Start of the window that was sealed last, 0 before the first, and its rows of
            bronze/runs by metric.
        reported: How many findings the delivery has reported since then, by kind.

    Raises:
        SpoolError: The spool cannot be read or written.
    """

    def __init__(
        self, spool: Spool, sources: Sources, window_us: int, delays: DelaysOf, catalogue: str
    ) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._sources, self.catalogue = dict(sources), catalogue
        self._clusters = dict(sources)  # also of those that are read no more
        self.window_us, self._delays = window_us, delays
        self.sealed_us = self.dropped_batches = 0
        self.last_window: tuple[int, Mapping[str, int]] = (0, {})
        self.reported: Counter[str] = Counter()
        self._broken = False  # whether an encoder may be another than the one on disk
        self._failed: tuple[int, int] | None = None  # when writing failed first and last
        self._unwritten: deque[Event] = deque(maxlen=_EVENTS)
        self._early: list[Event] = []
        self._encoders, unreadable = self._load()
        self.found = [*spool.found, *unreadable]
        for encoder in self._encoders.values():
            encoder.break_off()
        self._tell(*self.found)
        self._keep(self._retired() | self._of_each(self._cut_windows))

    def record(self, *scrapes: Scrape) -> None:
        """Keep attempts, in one transaction; they are on disk when this returns.

        Raises:
            SpoolError: They could not be kept, and are not in the encoder either.
            Exception: One of them could not be recorded; it is kept as an attempt that failed.
        """
        fault: Exception | None = None
        clocked = [one for one in scrapes if not one.exact and one.outcome != "skipped"]
        with self._writing(max((one.answered_us for one in clocked), default=0)):
            entries: list[bytes] = []
            for scrape in map(self._named, scrapes):
                if scrape.source not in self._sources:
                    continue  # it was under way when its source was taken out
                encoder = self._encoders[scrape.source]
                leaves = encoder.leaves_cluster(scrape)
                if leaves or encoder.holds_much():
                    sealed = encoder.leave_cluster() if leaves else encoder.seal_exact()
                    self._keep({scrape.source: sealed})
                    entries = []  # what they led to is in the encoders' state now
                if not encoder.accepts(scrape):
                    continue
                try:
                    entries.append(self._taken(scrape))
                except Exception as error:  # noqa: BLE001 - one answer must not stop the others
                    fault = error
                    self._spool.append(entries)
                    self._encoders, _ = self._load()  # one was half changed
                    why = f"it could not be recorded: {unexpected(error)}"
                    failed = replace(scrape, outcome="error", identity=None, answer=None, error=why)
                    entries = [self._taken(failed)]
            self._spool.append(entries)
        if fault is not None:
            raise fault

    def recorded_until_us(self, family: str, source: str = "") -> int:
        """Up to when a family of a source was recorded, in microseconds; 0: nothing yet."""
        with self._lock:
            encoders = self._load()[0] if self._broken else self._encoders
            return encoders[source or next(iter(self._sources))].recorded_until_us(family)

    def lost(self) -> dict[str, dict[Series, float]]:
        """Offsets that groups lost before they read them, by source, then by group and topic."""
        with self._lock:
            return {name: dict(self._encoders[name].lost) for name in self._sources}

    def reconfigure(self, delays: DelaysOf, catalogue: str, sources: Sources, start: Event) -> None:
        """Take a new catalogue, and other sources, while scrapes go on.

        Args:
            delays: Per metric, by how much its bean may be late.
            catalogue: Hash of the catalogue.
            sources: As when it was made.
            start: What the story of those that are new begins with.

        Raises:
            SpoolError: It could not be kept; nothing has changed.
        """
        with self._writing(start.at):
            before = self._sources, self._delays, self.catalogue
            known = before[0].keys()
            self._sources, self._delays, self.catalogue = dict(sources), delays, catalogue
            self._clusters |= self._sources
            self._encoders = self._with_all(self._encoders)
            for name in self._sources.keys() - known:
                self._encoders[name].begin(start.at)
                if known:
                    self._encoders[name].events.append(start)
            self._tell()
            try:
                self._keep(self._retired())
            except SpoolError:
                self._sources, self._delays, self.catalogue = before
                raise

    def begin(self, now_us: int) -> None:
        """An agent starts.

        Raises:
            SpoolError: It could not be kept now, and is kept when the spool can be written.
        """
        with self._writing(now_us):
            sealed = self._caught_up(now_us)
            for encoder in self._read.values():
                encoder.begin(now_us)
            self._keep(sealed)

    def note(self, event: Event) -> None:
        """Keep an event of the agent itself, for each of its sources.

        Raises:
            SpoolError: It could not be kept now, and is kept when the spool can be written.
        """
        try:
            with self._writing(event.at):
                self._tell(event)
                self._keep({})
        except SpoolError:
            self._unwritten.append(event)
            raise

    def report(self, kind: str, old: str, new: str) -> None:
        """Keep a finding of the delivery, as an event of now.

        Raises:
            SpoolError: It could not be kept.
        """
        with self._writing():
            for encoder in self._read.values():
                encoder.events.append(Event(encoder.ended_us(), kind, Series(""), old, new))
            self._keep({})
        self.reported[kind] += 1

    def refused(self, batches: Dropped, why: str) -> None:
        """Keep an event that batches cannot be delivered, as ``report`` does."""
        event = _event("batch_refused", batches)
        self.report(event.kind, event.old or "", f"{event.new}: {why}")

    def seal(self, now_us: int) -> bool:
        """Move the windows that are final into batches; True where there were any."""
        with self._writing(now_us):
            # Of one window together: the roles have other cadences, and wait for other answers.
            end_us = min((one.sealable_us(now_us) for one in self._read.values()), default=0)
            due = [name for name, one in self._read.items() if one.has_sealable(now_us, end_us)]
            if not due:
                return False
            sealed = {name: self._encoders[name].seal(now_us, end_us) for name in due}
            self._keep(sealed)
            start_us = self.sealed_us - self.window_us
            runs = (run for one in sealed.values() for run in one.runs if run.start >= start_us)
            self.last_window = start_us, Counter(run.series.metric for run in runs)
            return True

    def flush(self, now_us: int) -> None:
        """Move everything into batches at an orderly stop."""
        with self._writing(now_us):
            self._keep(self._caught_up(now_us))
            self._keep(self._of_each(lambda one: one.flush(now_us)))

    def step_clock(self, from_us: int, to_us: int) -> None:
        """The wall clock jumped.

        Raises:
            SpoolError: It could not be kept now; where it was set back, that is found later.
        """
        with self._writing(from_us):
            self._keep(self._of_each(lambda one: one.step_clock(from_us, to_us)))

    def begin_anew(self) -> None:
        """Take a new agent id: the lake has batches of this agent that its spool does not know.

        The spool is an old copy. Its waiting batches may be in the lake already and are deleted.

        Raises:
            SpoolError: It could not be kept; nothing has changed.
        """
        with self._writing():
            old, new, waiting = self._spool.agent, uuid.uuid4().hex, self._spool.depth().batches
            gone = f"{new}, {waiting} batches deleted" if waiting else new
            for name, encoder in self._encoders.items():
                self._encoders[name] = encoder.successor()
                if name in self._sources:
                    event = Event(encoder.ended_us(), "spool_restored", Series(""), old, gone)
                    self._encoders[name].events.append(event)
            self._spool.begin_anew(journal.state_of(self._encoders), new)
            self.sealed_us = self._sealed_us()

    @property
    def _read(self) -> dict[str, Encoder]:
        """The encoders of the sources that are read."""
        return {name: self._encoders[name] for name in self._sources}

    @contextmanager
    def _writing(self, at_us: int = 0) -> Iterator[None]:
        """Hold the lock; reload the encoders from disk if the last write failed.

        Args:
            at_us: The instant of what is written; 0: not known.
        """
        with self._lock:
            try:
                if self._broken:
                    self._resume(at_us)
                self._broken = True
                yield
                self._broken = False
            except SpoolError:
                if at_us:
                    first_us, last_us = self._failed or (at_us, at_us)
                    self._failed = min(first_us, at_us), max(last_us, at_us)
                raise

    def _resume(self, now_us: int) -> None:
        """Continue from the state on disk, with events of the time since."""
        # What follows reads everything again, so not while the disk is full.
        self._spool.remember("agent", self._spool.agent)
        self._encoders, events = self._load()
        for encoder in self._encoders.values():
            encoder.break_off()
        if self._failed is not None:
            old, new = map(_instant, self._failed)
            events.append(Event(self._failed[1], "spool_unwritable", Series(""), old, new))
        self._tell(*events, *self._unwritten)
        sealed = self._retired()
        if now_us:
            sealed |= self._caught_up(now_us, _STEP_US)
            for encoder in self._read.values():
                encoder.begin(now_us)
        self._keep(sealed)
        self._failed = None
        self._unwritten.clear()

    def _load(self) -> tuple[dict[str, Encoder], list[Event]]:
        """The encoders as they are on disk, and an event if part of them cannot be read."""
        state, entries = self._spool.recover()
        encoders, unreadable = journal.replay(state, entries, self.window_us)
        former = encoders.pop("", None)
        if former is not None and self._sources:
            encoders[next(iter(self._sources))] = former
        encoders = self._with_all(encoders)
        if unreadable is None:
            return encoders, []
        at_us = max((one.ended_us() for one in encoders.values()), default=0)
        return encoders, [Event(at_us, "journal_unreadable", Series(""), None, unreadable)]

    def _with_all(self, encoders: Mapping[str, Encoder]) -> dict[str, Encoder]:
        """These, and one for each source that has none yet; with the delays in force."""
        found = {name: Encoder(self.window_us) for name in self._sources} | {**encoders}
        for encoder in found.values():
            encoder.delays = dict(self._delays)
        return found

    def _named(self, scrape: Scrape) -> Scrape:
        return scrape if scrape.source else replace(scrape, source=next(iter(self._sources)))

    def _taken(self, scrape: Scrape) -> bytes:
        """The journal entry of a scrape that its encoder takes in."""
        encoder = self._encoders[scrape.source]
        entry = journal.encode(scrape, encoder)
        encoder.record(scrape)
        return entry

    def _tell(self, *events: Event) -> None:
        """Give events to each source; while there is none, they wait for the first."""
        waiting, self._early = [*self._early, *events], []
        if not self._sources:
            self._early = waiting
        for encoder in self._read.values():
            encoder.events += waiting

    def _of_each(self, work: Callable[[Encoder], SealedRows | None]) -> Sealed:
        """What the work takes out of each source's encoder; that of the others is not sealed."""
        done = {name: work(encoder) for name, encoder in self._encoders.items()}
        return {name: rows for name, rows in done.items() if rows and name in self._sources}

    def _retired(self) -> Sealed:
        """End the sources that are read no more at their last attempt, and take that out."""
        gone = {name: one for name, one in self._encoders.items() if name not in self._sources}
        sealed = {name: one.flush(one.ended_us()) for name, one in gone.items() if one.families}
        for name in sealed:
            self._encoders[name] = self._encoders[name].successor()
        return sealed

    def _caught_up(self, now_us: int, at_least_us: int = 1) -> Sealed:
        """Handle a clock that was set back: it stands before the last recorded attempt."""

        def catch_up(encoder: Encoder) -> SealedRows | None:
            last_us = encoder.last_attempt_us()
            if last_us - now_us < at_least_us:
                return None
            return encoder.step_clock(max(last_us + 1, encoder.sealed_us), now_us)

        return self._of_each(catch_up)

    def _cut_windows(self, encoder: Encoder) -> SealedRows | None:
        """End all runs if the configured window length has changed."""
        if encoder.window_us == self.window_us:
            return None
        sealed = encoder.flush(encoder.ended_us())
        encoder.window_us = self.window_us
        for family in encoder.families.values():
            family.cut_us = 0
        return sealed

    def _keep(self, sealed: Sealed) -> None:
        """Write sealed rows as batches; the journal starts empty."""
        batches = batches_of([(rows, self._origin(name)) for name, rows in sealed.items()])
        state = journal.state_of(self._encoders)
        self.dropped_batches += self._spool.seal(batches, state, self._rows_of_dropped)
        self.sealed_us = self._sealed_us()

    def _rows_of_dropped(self, batches: Dropped) -> list[Row]:
        event = _event("batch_dropped", batches)
        return [event_row(event, self._origin(name)) for name in self._sources]

    def _origin(self, name: str) -> Origin:
        identity = self._encoders[name].identity
        cluster = identity.cluster if identity else self._clusters.get(name) or UNKNOWN_CLUSTER
        return Origin(cluster, name, self.catalogue)

    def _sealed_us(self) -> int:
        """The end of what was sealed of all sources; a new one does not count yet."""
        return min((one.sealed_us for one in self._read.values() if one.sealed_us), default=0)


def _event(kind: str, batches: Dropped) -> Event:
    """The event of batches that do not reach the lake, at the end of their time."""
    numbers = f"{batches.first}..{batches.last}"
    span = f"{_instant(batches.from_us)}..{_instant(batches.to_us)}"
    return Event(batches.to_us, kind, Series(""), numbers, span)


def _instant(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="microseconds")
