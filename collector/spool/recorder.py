"""The recorder: a scrape is in the journal before the next begins, a sealed window in batches."""

from __future__ import annotations

import threading
import uuid
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from collector.encoding.encoder import Encoder, SealedRows
from collector.encoding.rows import Origin, batches_of, event_row
from collector.errors import SpoolError, unexpected
from collector.model import Event, Series
from collector.spool import journal
from collector.spool.spool import Depth

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.catalogue.entries import Delays
    from collector.model import Scrape
    from collector.spool.packing import Dropped
    from collector.spool.spool import Spool

_NOTHING: Final = SealedRows([], [], [])
_EVENTS: Final = 1_000  # that wait while the spool cannot be written
_STEP_US: Final = 1_000_000  # sources answer in any order; a clock that is set moves by more
UNKNOWN_CLUSTER = "unknown"
"""Stands for the cluster of a source that never answered and whose cluster is not configured."""


class Backlog(NamedTuple):
    """Rows that wait for the lake; instants in microseconds since the epoch.

    Attributes:
        spool: What the spool holds.
        limit_bytes: The size at which the oldest is dropped.
        dropped: Batches dropped since the agent started.
        delivered_us: Up to when everything is in the lake; None before anything was sealed.
        lost_commits: How often the lake was found to have lost commits since the agent started.
    """

    spool: Depth
    limit_bytes: int
    dropped: int
    delivered_us: int | None
    lost_commits: int


class Recorder:
    """The one writer of the encoder and the spool; safe to call from several threads.

    The time between the last attempt on disk and the first after a start is unknown, so a loss of
    the last writes does not matter.

    Args:
        spool: Where everything is kept; what it holds is replayed at once.
        source: Name of the source, as bronze calls it.
        window_us: Length of a window.
        delays: Per metric, by how much its bean may be late.
        catalogue: Hash of the catalogue in force.
        cluster: Cluster id if configured; the id that the source reports goes before it.

    Attributes:
        window_us: Length of a window.
        catalogue: Hash of the catalogue in force.
        found: Events of faults that the spool had when it was opened.
        sealed_us: The end of what was sealed into batches; 0 before the first.
        dropped_batches: How many were dropped from a full spool since then.
        last_window: Start of the window that was sealed last, 0 before the first, and its rows of
            bronze/runs by metric.
        reported: How many findings the delivery has reported since then, by kind.

    Raises:
        SpoolError: The spool cannot be read or written.
    """

    def __init__(
        self,
        spool: Spool,
        source: str,
        window_us: int,
        delays: Mapping[str, Delays],
        catalogue: str,
        cluster: str | None,
    ) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._source, self.catalogue, self._cluster = source, catalogue, cluster
        self.window_us, self._delays = window_us, delays
        self.sealed_us = self.dropped_batches = 0
        self.last_window: tuple[int, Mapping[str, int]] = (0, {})
        self.reported: Counter[str] = Counter()
        self._broken = False  # whether the encoder may be another than the one on disk
        self._failed: tuple[int, int] | None = None  # when writing failed first and last
        self._unwritten: deque[Event] = deque(maxlen=_EVENTS)
        self._encoder, unreadable = self._load()
        self.found = [*spool.found, *unreadable]
        self._encoder.break_off()
        self._encoder.events += self.found
        self._keep(self._cut_windows())

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
            for scrape in scrapes:
                leaves = self._encoder.leaves_cluster(scrape)
                if leaves or self._encoder.holds_much():
                    encoder = self._encoder
                    self._keep(encoder.leave_cluster() if leaves else encoder.seal_exact())
                    entries = []  # what they led to is in the encoder's state now
                if not self._encoder.accepts(scrape):
                    continue
                try:
                    entries.append(self._taken(scrape))
                except Exception as error:  # noqa: BLE001 - one answer must not stop the others
                    fault = error
                    self._spool.append(entries)
                    self._encoder, _ = self._load()  # it was half changed
                    why = f"it could not be recorded: {unexpected(error)}"
                    failed = replace(scrape, outcome="error", identity=None, answer=None, error=why)
                    entries = [self._taken(failed)]
            self._spool.append(entries)
        if fault is not None:
            raise fault

    def recorded_until_us(self, family: str) -> int:
        """Up to when a family was recorded, in microseconds; 0: nothing yet."""
        with self._lock:
            return (self._load()[0] if self._broken else self._encoder).recorded_until_us(family)

    def lost(self) -> dict[Series, float]:
        """Offsets that groups lost before they read them, least and most, by group and topic."""
        with self._lock:
            return dict(self._encoder.lost)

    def backlog(self) -> Backlog:
        """The rows that wait now.

        Raises:
            SpoolError: The spool cannot be read.
        """
        depth, lost = self._spool.depth(), self.reported["lake_lost_commits"]
        delivered_us = depth.oldest_us or self.sealed_us or None
        return Backlog(depth, self._spool.max_bytes, self.dropped_batches, delivered_us, lost)

    def reconfigure(self, delays: Mapping[str, Delays], catalogue: str) -> None:
        """Take a new catalogue while scrapes go on."""
        with self._writing():
            self.catalogue, self._delays = catalogue, delays
            self._encoder.delays = dict(delays)

    def begin(self, now_us: int) -> None:
        """An agent starts.

        Raises:
            SpoolError: It could not be kept now, and is kept when the spool can be written.
        """
        with self._writing(now_us):
            sealed = self._caught_up(now_us)
            self._encoder.begin(now_us)
            self._keep(sealed)

    def note(self, event: Event) -> None:
        """Keep an event of the agent itself.

        Raises:
            SpoolError: It could not be kept now, and is kept when the spool can be written.
        """
        try:
            with self._writing(event.at):
                self._encoder.events.append(event)
                self._keep(_NOTHING)
        except SpoolError:
            self._unwritten.append(event)
            raise

    def report(self, kind: str, old: str, new: str) -> None:
        """Keep a finding of the delivery, as an event of now.

        Raises:
            SpoolError: It could not be kept.
        """
        with self._writing():
            event = Event(self._encoder.ended_us(), kind, Series(""), old, new)
            self._encoder.events.append(event)
            self._keep(_NOTHING)
        self.reported[kind] += 1

    def refused(self, batches: Dropped, why: str) -> None:
        """Keep an event that batches cannot be delivered, as ``report`` does."""
        event = _event("batch_refused", batches)
        self.report(event.kind, event.old or "", f"{event.new}: {why}")

    def seal(self, now_us: int) -> bool:
        """Move the windows that are final into batches; True where there were any."""
        with self._writing(now_us):
            if not self._encoder.has_sealable(now_us):
                return False
            sealed = self._encoder.seal(now_us)
            self._keep(sealed)
            start_us = self.sealed_us - self.window_us
            rows = Counter(run.series.metric for run in sealed.runs if run.start >= start_us)
            self.last_window = start_us, rows
            return True

    def flush(self, now_us: int) -> None:
        """Move everything into batches at an orderly stop."""
        with self._writing(now_us):
            self._keep(self._caught_up(now_us))
            self._keep(self._encoder.flush(now_us))

    def step_clock(self, from_us: int, to_us: int) -> None:
        """The wall clock jumped.

        Raises:
            SpoolError: It could not be kept now; where it was set back, that is found later.
        """
        with self._writing(from_us):
            self._keep(self._encoder.step_clock(from_us, to_us))

    def begin_anew(self) -> None:
        """Take a new agent id: the lake has batches of this agent that its spool does not know.

        The spool is an old copy. Its waiting batches may be in the lake already and are deleted.

        Raises:
            SpoolError: It could not be kept; nothing has changed.
        """
        with self._writing():
            old, new, waiting = self._spool.agent, uuid.uuid4().hex, self._spool.depth().batches
            at_us, self._encoder = self._encoder.ended_us(), self._encoder.successor()
            gone = f"{new}, {waiting} batches deleted" if waiting else new
            self._encoder.events.append(Event(at_us, "spool_restored", Series(""), old, gone))
            self._spool.begin_anew(msgspec.msgpack.encode(self._encoder), new)
            self.sealed_us = self._encoder.sealed_us

    @contextmanager
    def _writing(self, at_us: int = 0) -> Iterator[None]:
        """Hold the lock; reload the encoder from disk if the last write failed.

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
        self._encoder, events = self._load()
        self._encoder.break_off()
        if self._failed is not None:
            first_us, last_us = self._failed
            old, new = _instant(first_us), _instant(last_us)
            events.append(Event(last_us, "spool_unwritable", Series(""), old, new))
        self._encoder.events += [*events, *self._unwritten]
        sealed = _NOTHING
        if now_us:
            sealed = self._caught_up(now_us, _STEP_US)
            self._encoder.begin(now_us)
        self._keep(sealed)
        self._failed = None
        self._unwritten.clear()

    def _load(self) -> tuple[Encoder, list[Event]]:
        """The encoder as it is on disk, and an event if part of it cannot be read."""
        state, entries = self._spool.recover()
        fresh = Encoder(self.window_us)
        encoder, unreadable = journal.replay(state or msgspec.msgpack.encode(fresh), entries, fresh)
        encoder.delays = dict(self._delays)
        if unreadable is None:
            return encoder, []
        at_us = encoder.ended_us()
        return encoder, [Event(at_us, "journal_unreadable", Series(""), None, unreadable)]

    def _taken(self, scrape: Scrape) -> bytes:
        """The journal entry of a scrape that the encoder takes in."""
        entry = journal.encode(scrape, self._encoder)
        self._encoder.record(scrape)
        return entry

    def _caught_up(self, now_us: int, at_least_us: int = 1) -> SealedRows:
        """Handle a clock that was set back: it stands before the last recorded attempt."""
        last_us = self._encoder.last_attempt_us()
        if last_us - now_us < at_least_us:
            return _NOTHING
        return self._encoder.step_clock(max(last_us + 1, self._encoder.sealed_us), now_us)

    def _cut_windows(self) -> SealedRows:
        """End all runs if the configured window length has changed."""
        encoder = self._encoder
        if encoder.window_us == self.window_us:
            return _NOTHING
        sealed = encoder.flush(encoder.ended_us())
        encoder.window_us = self.window_us
        for family in encoder.families.values():
            family.cut_us = 0
        return sealed

    def _keep(self, sealed: SealedRows) -> None:
        """Write sealed rows as batches; the journal starts empty."""
        identity = self._encoder.identity
        cluster = identity.cluster if identity else self._cluster or UNKNOWN_CLUSTER
        origin = Origin(cluster, self._source, self.catalogue)
        state = msgspec.msgpack.encode(self._encoder)
        self.dropped_batches += self._spool.seal(
            batches_of(sealed, origin),
            state,
            lambda dropped: event_row(_event("batch_dropped", dropped), origin),
        )
        self.sealed_us = self._encoder.sealed_us


def _event(kind: str, batches: Dropped) -> Event:
    """The event of batches that do not reach the lake, at the end of their time."""
    numbers = f"{batches.first}..{batches.last}"
    span = f"{_instant(batches.from_us)}..{_instant(batches.to_us)}"
    return Event(batches.to_us, kind, Series(""), numbers, span)


def _instant(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="microseconds")
