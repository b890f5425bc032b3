"""The recorder: a scrape is in the journal before the next begins, a sealed window in a batch."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from collector import journal
from collector.batches import Origin, batch_of
from collector.runs import Encoder, Event, Sealed
from collector.samples import Scrape, Series

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.spool import Spool

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
        self._broken = False
        self._encoder = self._recover()
        self._configure()

    def record(self, scrape: Scrape) -> None:
        """Keep one attempt; it is on disk when this returns.

        Raises:
            SpoolError: It could not be kept, and is not in the encoder either.
        """
        with self._sound():
            if self._encoder.accepts(scrape):
                self._spool.append(journal.encode(scrape, self._encoder))
                self._encoder.record(scrape)
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
        """An agent starts; if the clock stands before the last attempt, it was set back."""
        with self._sound():
            last_us = self._encoder.last_attempt_us()
            if now_us < last_us:
                self._keep(self._encoder.step_clock(last_us, now_us))
            self._encoder.begin(now_us)

    def note(self, event: Event) -> None:
        """Keep something that happened to the agent itself."""
        with self._sound():
            self._encoder.events.append(event)
            self._keep(Sealed([], [], []))

    def seal(self, now_us: int) -> bool:
        """Move the windows that are final into a batch; True where there were any."""
        with self._sound():
            if not self._encoder.has_sealable(now_us):
                return False
            self._keep(self._encoder.seal(now_us))
            return True

    def flush(self, now_us: int) -> None:
        """Move everything into a batch at an orderly stop."""
        with self._sound():
            self._keep(self._encoder.flush(now_us))

    def step_clock(self, from_us: int, to_us: int) -> None:
        """The wall clock jumped."""
        with self._sound():
            self._keep(self._encoder.step_clock(from_us, to_us))

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Alone, and with the encoder as it is on disk, should it have got lost."""
        with self._lock:
            if self._broken:
                self._mend()
            yield

    def _mend(self) -> None:
        self._encoder = self._recover()
        self._remember()
        self._broken = False

    def _recover(self) -> Encoder:
        state, entries = self._spool.recover()
        if state is None:
            encoder = Encoder(self._window_us, dict(self._memory_us))
        else:
            encoder = msgspec.msgpack.decode(state, type=Encoder)
        for entry in entries:
            encoder.record(journal.decode(entry, encoder))
        return encoder

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
        try:
            batch = batch_of(sealed, origin, self._spool.known_sets())
            state = msgspec.msgpack.encode(self._encoder)
            dropped_batches = self._spool.seal(batch, state)
        except Exception:
            self._broken = True
            self._mend()  # as it was: what could not be kept is not lost
            raise
        for number in dropped_batches:
            dropped = Event(self._encoder.sealed_us, "batch_dropped", Series(""), str(number))
            self._encoder.events.append(dropped)
        self.dropped_batches += len(dropped_batches)
