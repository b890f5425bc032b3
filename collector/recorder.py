"""The recorder: a scrape is in the journal before the next begins, a sealed window in a batch."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from collector import journal, takeover
from collector.batches import Origin, batch_of
from collector.errors import SpoolError
from collector.missed import Missed
from collector.runs import Encoder
from collector.samples import Scrape, Series
from collector.sealed import Event, Sealed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.missed import Change
    from collector.spool import Spool

_NOTHING: Final = Sealed([], [], [])
UNKNOWN_CLUSTER = "unknown"
"""Stands for the cluster of a source that never answered and whose cluster is not configured."""


class Recorder:
    """The one writer of the encoder and the spool; safe to call from several threads.

    Args:
        spool: Where everything is kept; what it holds is replayed at once.
        source: Name of the source, as bronze calls it.
        window_us: Length of a window.
        memory_us: Per metric, how long its bean shows a value after its cause has ended.
        catalogue: Hash of the catalogue in force.
        cluster: Cluster id if configured; what the source says goes before it.

    Attributes:
        found: What was wrong with the spool when it was opened.
        dropped_batches: How many lost their runs to a full spool since then.
        last_window: Start of the window that was sealed last, 0 before the first, and its rows of
            bronze/runs by metric.

    Raises:
        SpoolError: The spool cannot be read or written, or holds what this version cannot read.
    """

    def __init__(
        self,
        spool: Spool,
        source: str,
        window_us: int,
        memory_us: Mapping[str, int],
        catalogue: str,
        cluster: str | None,
    ) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._source, self._catalogue, self._cluster = source, catalogue, cluster
        self._window_us, self._memory_us = window_us, memory_us
        self.dropped_batches = 0
        self.last_window: tuple[int, Mapping[str, int]] = (0, {})
        self._broken = False
        self._missed = Missed()
        self._encoder = self._recover()
        self._admit()
        self._configure()

    def record(self, scrape: Scrape) -> None:
        """Keep one attempt; it is on disk when this returns.

        Raises:
            SpoolError: It could not be kept, and is not in the encoder either.
        """
        with self._lock:
            try:
                self._mend()
                self._own_up()
                if self._encoder.leaves_cluster(scrape):
                    self._keep(self._encoder.leave_cluster())
                self._append(scrape)
            except SpoolError as error:
                self._missed.attempt(scrape, error)
                raise
            if scrape.exact and self._encoder.holds_much():
                self._keep(self._encoder.seal_told())

    def told_us(self, family: str) -> int:
        """Up to when a family was told, in microseconds; 0: nothing was told yet."""
        with self._sound():
            return self._encoder.told_us(family)

    @property
    def window_us(self) -> int:
        """Length of a window."""
        return self._window_us

    @property
    def sealed_us(self) -> int:
        """The end of what was sealed into batches; 0 before the first."""
        with self._sound():
            return self._encoder.sealed_us

    @property
    def catalogue(self) -> str:
        """Hash of the catalogue in force."""
        return self._catalogue

    def reconfigure(self, memory_us: Mapping[str, int], catalogue: str) -> None:
        """Take a new catalogue while scrapes go on."""
        with self._sound():
            self._catalogue, self._memory_us = catalogue, memory_us
            self._configure()

    def begin(self, now_us: int) -> None:
        """An agent starts.

        Raises:
            SpoolError: It could not be kept now, and is kept when the spool can be written.
        """
        with self._owning_up():
            self._catch_up(now_us)
            self._change(partial(_begin, now_us))

    def note(self, event: Event) -> None:
        """Keep something that happened to the agent itself.

        Raises:
            SpoolError: It could not be kept now, and is kept when the spool can be written.
        """
        with self._lock:
            self._change(partial(_note, event))

    def seal(self, now_us: int) -> bool:
        """Move the windows that are final into a batch; True where there were any."""
        with self._owning_up():
            if not self._encoder.has_sealable(now_us):
                return False
            sealed = self._encoder.seal(now_us)
            self._keep(sealed)
            start_us = self._encoder.sealed_us - self._window_us
            rows = Counter(run.series.metric for run in sealed.runs if run.start >= start_us)
            self.last_window = start_us, rows
            return True

    def flush(self, now_us: int) -> None:
        """Move everything into a batch at an orderly stop."""
        with self._owning_up():
            self._catch_up(now_us)
            self._keep(self._encoder.flush(now_us))

    def step_clock(self, from_us: int, to_us: int) -> None:
        """The wall clock jumped.

        Raises:
            SpoolError: It could not be kept now, and is kept when the spool can be written.
        """
        with self._lock:
            self._change(partial(_step_clock, from_us, to_us))

    def forsake(self) -> None:
        """The lake knows more of this agent than its spool: go on as another, from here on.

        The spool was restored from an old copy. What it holds of the time before this start may
        have been told, and what the first answers since then count on from was told.

        Raises:
            SpoolError: It could not be kept; nothing has changed.
        """
        with self._owning_up():
            old, new = self._spool.agent, uuid.uuid4().hex
            now_us = self._encoder.ended_us()
            self._keep(self._encoder.flush(now_us))
            takeover.forsake(self._encoder)
            event = Event(now_us, "spool_restored", Series(""), old, new)
            self._encoder.events.append(event)
            with self._restoring():
                self._spool.renew_agent(msgspec.msgpack.encode(self._encoder), new)

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Alone, and with the encoder as it is on disk, should it have got lost."""
        with self._lock:
            self._mend()
            yield

    @contextmanager
    def _owning_up(self) -> Iterator[None]:
        """Sound, and with all that had happened."""
        with self._sound():
            self._own_up()
            yield

    def _own_up(self) -> None:
        """Keep what could not be kept when it happened."""
        while (oldest := self._missed.oldest()) is not None:
            if isinstance(oldest, Scrape):
                self._append(oldest)
            else:
                self._keep(oldest(self._encoder))
            self._missed.kept()

    def _change(self, change: Change) -> None:
        """Keep a change, now or as soon as the spool can be written."""
        self._missed.change(change)
        self._mend()
        self._own_up()

    def _catch_up(self, now_us: int) -> None:
        """If the clock stands before what was recorded, it was set back."""
        if now_us < self._encoder.last_attempt_us():
            told_us = max(self._encoder.last_attempt_us(), self._encoder.sealed_us)
            self._change(partial(_step_clock, told_us, now_us))

    def _append(self, scrape: Scrape) -> None:
        if self._encoder.accepts(scrape):
            self._spool.append(journal.encode(scrape, self._encoder))
            self._encoder.record(scrape)

    def _mend(self) -> None:
        if self._broken:
            self._encoder = self._recover()
            self._remember()
            self._broken = False

    @contextmanager
    def _restoring(self) -> Iterator[None]:
        """The encoder becomes what is on disk again, should what follows not get there."""
        try:
            yield
        except Exception:
            self._broken = True
            self._mend()  # as it was: what could not be kept is not lost
            raise

    def _recover(self) -> Encoder:
        state, entries = self._spool.recover()
        try:
            if state is None:
                encoder = Encoder(self._window_us, dict(self._memory_us))
            else:
                encoder = msgspec.msgpack.decode(state, type=Encoder)
            for entry in entries:
                encoder.record(journal.decode(entry, encoder))
        except msgspec.DecodeError as error:
            raise SpoolError(
                f"the spool holds what this version of jmxlake-agent cannot read ({error}); "
                "let the version that wrote it deliver it, or move it away"
            ) from error
        return encoder

    def _admit(self) -> None:
        """Take in what was found when the spool was opened."""
        self.found = self._spool.found
        if not self.found:
            return
        if any(one.kind == "spool_tail_lost" for one in self.found):
            takeover.lose_tail(self._encoder)
        for one in self.found:
            event = Event(one.at_us, one.kind, Series(""), one.old, one.new)
            self._encoder.events.append(event)
        self._keep(_NOTHING)

    def _configure(self) -> None:
        encoder, window_us = self._encoder, self._window_us
        if encoder.window_us != window_us:
            self._keep(encoder.flush(max(encoder.last_attempt_us(), encoder.sealed_us)))
            encoder.window_us = window_us
            for family in encoder.families.values():
                family.cut_us = 0
        self._remember()

    def _remember(self) -> None:
        self._encoder.memory_us = dict(self._memory_us)
        for family in self._encoder.families.values():
            for metric, track in family.gauges.items():
                track.memory_us = self._memory_us.get(metric, 0)

    def _keep(self, sealed: Sealed) -> None:
        identity = self._encoder.identity
        cluster = identity.cluster if identity else self._cluster or UNKNOWN_CLUSTER
        origin = Origin(cluster, self._source, self._catalogue)
        with self._restoring():
            self._spool.bind("cluster", cluster)
            batch = batch_of(
                sealed, origin, self._spool.known_sets(), takeover.since(self._encoder, sealed)
            )
            state = msgspec.msgpack.encode(self._encoder)
            dropped = self._spool.seal(batch, state)
        self.dropped_batches += len(dropped)


def _begin(now_us: int, encoder: Encoder) -> Sealed:
    encoder.begin(now_us)
    return _NOTHING


def _note(event: Event, encoder: Encoder) -> Sealed:
    encoder.events.append(event)
    return _NOTHING


def _step_clock(from_us: int, to_us: int, encoder: Encoder) -> Sealed:
    return encoder.step_clock(from_us, to_us)
