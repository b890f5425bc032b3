"""The exact history of min ISR, from a broker's own copy of the controllers' log.

Nothing is kept on disk: after a start the state is rebuilt from the newest snapshot of the log that
is older than what was told last, and the history since then is told.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

from collector.errors import SourceError, SourceTimeoutError
from collector.samples import Answer, Identity, Notice, Series
from collector.sources.cap import within_cap
from collector.sources.metadata_history import History, committed
from collector.sources.metadata_state import MetadataState
from collector.sources.readings import series_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.catalogue import Family
    from collector.sources.expected import Expected
    from collector.sources.metadata_folder import Snapshot
    from collector.sources.metadata_records import Batch, Place, Record

_SILENCE_SECONDS: Final = 30.0


class Log(Protocol):
    """What is read: the folder of a node's log (see MetadataFolder)."""

    @property
    def where(self) -> str:
        """Its name, for messages."""

    def identity(self) -> tuple[str, str]:
        """Cluster id and node id."""

    def start_offset(self) -> int | None:
        """The first offset there is; None: no log."""

    def snapshots(self) -> list[Snapshot]:
        """All snapshots, the oldest first."""

    def snapshot(self, snapshot: Snapshot) -> Iterator[Record]:
        """The records of a snapshot."""

    def batches_from(self, offset: int) -> Iterator[Batch]:
        """Every batch that ends after an offset."""

    def batches_at(self, place: Place) -> Iterator[Batch]:
        """Every batch from a place on, whatever stands there now."""


class _LogChangedError(Exception):
    """What we read last stands there no longer."""

    def __init__(self, cursor: Place, found: Batch | None) -> None:
        self.old = f"{cursor.offset}@{cursor.epoch}"
        self.new = f"{found.place.offset}@{found.place.epoch}" if found else "end"
        self.truncated = found is None or found.place.offset <= cursor.offset
        super().__init__(self.old)


class MetadataLogSource:
    """Tells the history that a broker's copy of the log holds.

    Args:
        expected: Whose folder it must be.
        log: The log.
        min_isr: min.insync.replicas in the broker's own configuration file.
        told: Up to when the recorder has been told, in microseconds; 0: nothing yet.
        clock: Seconds that never jump.
    """

    def __init__(
        self,
        expected: Expected,
        log: Log,
        *,
        min_isr: int = 1,
        told: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._expected = expected
        self._where = log.where
        self._log = log
        self._min_isr = min_isr
        self._told = told
        self._clock = clock
        self._history: History | None = None
        self._next_offset = 0
        self._cursor: Place | None = None
        self._moved_at = clock()

    def identify(self) -> Identity:
        """Whose log it is, as Kafka notes beside it; costs one small file.

        Raises:
            SourceError: It cannot be read, or is another node's.
        """
        cluster, node = self._log.identity()
        identity = Identity(cluster, node, None, 0)
        self._expected.check(self._where, identity)
        return identity

    def read(self, family: Family) -> Answer:
        """The history since what was recorded last.

        Raises:
            SourceError: The log cannot be read, or has said nothing for half a minute.
        """
        told_us = self._told()
        if self._history is None or told_us < (self._history.told_us or 0):
            self._history = self._begin(told_us, family)
        self._history.skip_to(told_us)
        notices: list[Notice] = []
        try:
            more = self._go_on(self._history)
        except _LogChangedError as changed:
            if changed.truncated:
                subject = Series("")
                notices.append(Notice("metadata_log_truncated", subject, changed.old, changed.new))
            self._history = self._begin(told_us, family)
            more = self._go_on(self._history)
        return self._answer(self._history, family, notices, more=more)

    def close(self) -> None:
        """Forget where we were; the source may be used again."""
        self._history = self._cursor = None

    def _begin(self, told_us: int, family: Family) -> History:
        """Rebuild the state as it was at an instant, or as soon after it as there is one."""
        self._history = self._cursor = None
        self._moved_at = self._clock()
        metrics = {metric.call: metric.name for metric in family.metrics if metric.call}
        state = MetadataState(int(self._log.identity()[1]), self._min_isr, metrics)
        base = self._base(told_us)
        if base is not None:
            state.apply(self._log.snapshot(base))
        self._next_offset = base.next_offset if base else 0
        return History(state, base.at_us if base else 0, told_us or None)

    def _base(self, told_us: int) -> Snapshot | None:
        """The snapshot to begin with; None: the log itself has everything."""
        start = self._log.start_offset()
        if start is None:
            raise SourceError(
                f"{self._where}: no metadata log there; is metadata_log.folder right?"
            )
        usable = [one for one in self._log.snapshots() if one.next_offset >= start]
        older = [one for one in usable if not told_us or one.at_us <= told_us]
        if older:
            return older[-1]
        if start == 0:
            return None
        if not usable:
            raise SourceError(
                f"{self._where}: the log begins at {start} and no snapshot goes before"
            )
        return usable[0]

    def _go_on(self, history: History) -> bool:
        """Take in what is new; whether there is more than fits into one answer."""
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
                f"{self._where}: the log speaks of {error}, which it has not made; read again"
            ) from None
        return False

    def _batches(self) -> Iterator[Batch]:
        cursor = self._cursor
        if cursor is None:
            return self._log.batches_from(self._next_offset)
        batches = self._log.batches_at(cursor)
        first = next(batches, None)
        if first is None or first.place != cursor:
            raise _LogChangedError(cursor, first)
        return chain([first], batches)

    def _answer(
        self, history: History, family: Family, notices: list[Notice], *, more: bool
    ) -> Answer:
        moments, of_history = history.take()
        silent = self._clock() - self._moved_at
        if not moments and silent > _SILENCE_SECONDS:
            raise SourceTimeoutError(
                f"{self._where}: the log has said nothing for {_SILENCE_SECONDS:g} s or more: is"
                " the broker up, and does it reach the controllers?"
            )
        whole = Answer(
            history.readings, 0, notices=(*notices, *of_history), moments=moments, more=more
        )
        told = within_cap(whole, family.cap)
        return replace(told, beans=series_count(told.readings))
