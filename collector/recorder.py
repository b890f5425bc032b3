"""The recorder: a scrape is in the journal before the next begins, a sealed window in a batch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from collector import journal
from collector.batches import Origin, batch_of
from collector.runs import Encoder, Event, Sealed
from collector.samples import Scrape, Series

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        self._encoder = self._recover()
        self._configure()

    def record(self, scrape: Scrape) -> None:
        """Keep one attempt; it is on disk when this returns.

        Raises:
            SpoolError: It could not be kept, and is not in the encoder either.
        """
        with self._lock:
            if self._encoder.accepts(scrape):
                self._spool.append(journal.encode(scrape, self._encoder))
                self._encoder.record(scrape)

    def begin(self, now_us: int) -> None:
        """An agent starts; if the clock stands before the last attempt, it was set back."""
        with self._lock:
            last_us = self._encoder.last_attempt_us()
            if now_us < last_us:
                self._keep(self._encoder.step_clock(last_us, now_us))

    def note(self, event: Event) -> None:
        """Keep something that happened to the agent itself."""
        with self._lock:
            self._encoder.events.append(event)
            self._keep(Sealed([], [], []))

    def seal(self, now_us: int) -> bool:
        """Move the windows that are final into a batch; True where there were any."""
        with self._lock:
            if self._encoder.sealable_us(now_us) <= self._encoder.sealed_us:
                return False
            self._keep(self._encoder.seal(now_us))
            return True

    def flush(self, now_us: int) -> None:
        """Move everything into a batch at an orderly stop."""
        with self._lock:
            self._keep(self._encoder.flush(now_us))

    def step_clock(self, from_us: int, to_us: int) -> None:
        """The wall clock jumped."""
        with self._lock:
            self._keep(self._encoder.step_clock(from_us, to_us))

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
        encoder, window_us, memory_us = self._encoder, self._window_us, self._memory_us
        if encoder.window_us != window_us:
            self._keep(encoder.flush(max(encoder.last_attempt_us(), encoder.sealed_us)))
            encoder.window_us = window_us
            for family in encoder.families.values():
                family.cut_us = 0
        encoder.memory_us = dict(memory_us)
        for family in encoder.families.values():
            for metric, track in family.gauges.items():
                track.memory_us = memory_us.get(metric, 0)

    def _keep(self, sealed: Sealed) -> None:
        identity = self._encoder.identity
        cluster = identity.cluster if identity else self._cluster or UNKNOWN_CLUSTER
        origin = Origin(cluster, self._source, self._catalogue)
        try:
            batch = batch_of(sealed, origin, self._spool.known_sets())
            state = msgspec.msgpack.encode(self._encoder)
            dropped_batches = self._spool.seal(batch, state)
        except Exception:
            self._encoder = self._recover()  # as it was: what could not be kept is not lost
            raise
        for number in dropped_batches:
            dropped = Event(self._encoder.sealed_us, "batch_dropped", Series(""), str(number))
            self._encoder.events.append(dropped)
