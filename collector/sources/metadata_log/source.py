"""The exact history of partitions, from a broker's copy of the controllers' log.

The source stores no state. After a start it rebuilds the state from the newest snapshot of the log
that is older than the last recorded change, and reports the history since then.
"""

import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from collector.catalogue import Family
from collector.errors import SourceError, SourceTimeoutError
from collector.model import Answer, Identity, Notice, Series
from collector.sources.base.identity import Expected
from collector.sources.base.readings import answer_of
from collector.sources.metadata_log.history import History, MetadataState, committed
from collector.sources.metadata_log.records import LogBatch, Place
from collector.sources.metadata_log.segments import MetadataFolder, Snapshot
from collector.sources.transports import MetadataLog

_SILENCE_SECONDS: Final = 30.0


class _LogChangedError(Exception):
    """The last batch that the agent read no longer exists. The arguments are the notices of it."""


class MetadataLogSource:
    """Reads the history from a broker's copy of the log.

    Args:
        expected: Expected identity of the folder's broker.
        log: Log.
        min_isr: min.insync.replicas in the broker's own configuration file.
        recorded_until: Returns the end of the recorded history, in microseconds. 0: no history.
        clock: Steady clock, in seconds.
    """

    def __init__(
        self,
        expected: Expected,
        log: MetadataFolder,
        *,
        min_isr: int,
        recorded_until: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._expected, self._log, self._where = expected, log, log.where
        self._min_isr, self._recorded_until = min_isr, recorded_until
        self._clock = clock
        self._history: History | None = None
        self._next_offset = 0
        self._cursor: Place | None = None
        self._moved_at = clock()

    def identify(self) -> Identity:
        """Return the identity of the log's broker, from Kafka's file ``meta.properties``.

        Raises:
            SourceError: The file cannot be read, or belongs to another node.
        """
        cluster, node = self._log.identity()
        identity = Identity(cluster, node, None, 0)
        self._expected.check(self._where, identity)
        return identity

    def read(self, family: Family) -> Answer:
        """Return the history since the last recorded change.

        Raises:
            SourceError: The log cannot be read, or has no new record for half a minute.
        """
        recorded_us = self._recorded_until()
        if self._history is None or recorded_us < (self._history.reported_us or 0):
            self._history = self._rebuild(recorded_us, family)
        self._history.skip_to(recorded_us)
        notices: list[Notice] = []
        try:
            more = self._advance(self._history)
        except _LogChangedError as changed:
            notices.extend(changed.args)
            self._history = self._rebuild(recorded_us, family)
            more = self._advance(self._history)
        readings, moments, of_history = self._history.take()
        silent = self._clock() - self._moved_at
        if not moments and silent > _SILENCE_SECONDS:
            raise SourceTimeoutError(
                f"{self._where}: the log has no new records for {_SILENCE_SECONDS:g} s or more;"
                " check that the broker is running and reaches the controllers"
            )
        of_all = (*notices, *of_history)
        return answer_of(readings, family.cap, notices=of_all, moments=moments, more=more)

    def close(self) -> None:
        """Drop the state and the position. The source can be used again."""
        self._history = self._cursor = None

    def _rebuild(self, recorded_us: int, family: Family) -> History:
        """Rebuild the state at an instant, or the first known state after it."""
        self._history = self._cursor = None
        self._moved_at = self._clock()
        metrics = {metric.call: metric.name for metric in family.metrics if metric.call}
        state = MetadataState(int(self._log.identity()[1]), self._min_isr, metrics)
        base = self._base(recorded_us)
        if base is not None:
            state.apply(self._log.snapshot(base))
        self._next_offset = base.next_offset if base else 0
        return History(state, base.at_us if base else 0, recorded_us or None)

    def _base(self, recorded_us: int) -> Snapshot | None:
        """Return the snapshot to start from. None: the log itself is complete."""
        start = self._log.start_offset()
        if start is None:
            raise SourceError(f"{self._where}: no metadata log found; check metadata_log.folder")
        usable = [one for one in self._log.snapshots() if one.next_offset >= start]
        older = [one for one in usable if not recorded_us or one.at_us <= recorded_us]
        if older:
            return older[-1]
        if start == 0:
            return None
        if not usable:
            raise SourceError(
                f"{self._where}: the log starts at offset {start}, and no earlier snapshot exists"
            )
        return usable[0]

    def _advance(self, history: History) -> bool:
        """Add new batches to the history; return True if more exist than fit into one answer."""
        try:
            for batch in committed(self._batches()):
                if batch.place == self._cursor:
                    continue
                if history.full:
                    return True
                history.add(batch)
                self._cursor, self._moved_at = batch.place, self._clock()
        except LookupError as error:
            self.close()
            raise SourceError(
                f"{self._where}: the log refers to {error} before the record that creates it; the"
                " next scrape reads the log again"
            ) from None
        return False

    def _batches(self) -> Iterator[LogBatch]:
        cursor = self._cursor
        offset = self._next_offset if cursor is None else cursor.offset
        batches = self._log.batches_from(offset, cursor)
        first = next(batches, None)
        if cursor is not None and (first is None or first.place != cursor):
            raise _LogChangedError(*_truncation(cursor, first))
        if first is None:
            return batches
        if first.place.offset > offset:
            raise SourceError(f"{self._where}: the log no longer has offset {offset}")
        return chain([first], batches)


def _truncation(cursor: Place, found: LogBatch | None) -> list[Notice]:
    """Return a notice if the log was truncated. It is empty if Kafka deleted old segments."""
    if found is not None and found.place.offset > cursor.offset:
        return []
    new = f"{found.place.offset}@{found.place.epoch}" if found else "end"
    return [Notice("metadata_log_truncated", Series(""), f"{cursor.offset}@{cursor.epoch}", new)]


def opened(
    expected: Expected, settings: MetadataLog, recorded_until: Callable[[], int]
) -> MetadataLogSource:
    """Open the source. The local JVM must run."""
    return MetadataLogSource(
        expected,
        MetadataFolder(settings.folder),
        min_isr=settings.min_insync_replicas,
        recorded_until=recorded_until,
    )
