"""The backlog: what waits between the broker and the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakehouse import tables

if TYPE_CHECKING:
    from collector.batches import Batch
    from collector.recorder import Recorder
    from collector.spool import Spool

_START = tables.SCRAPES.positions["start"]


class Backlog(NamedTuple):
    """What waits at one instant; instants in microseconds since the epoch.

    Attributes:
        batches: Sealed batches in the spool.
        bytes: Their size.
        limit_bytes: The size at which the oldest is dropped.
        dropped: Batches dropped since the agent started.
        oldest_us: Start of the oldest that waits in a batch; None where none waits.
        delivered_us: Up to when everything is in the lake; None before anything was sealed.
    """

    batches: int
    bytes: int
    limit_bytes: int
    dropped: int
    oldest_us: int | None
    delivered_us: int | None


class BacklogGauge:
    """Measures the backlog; unpacks a batch once only.

    Args:
        spool: Where batches wait.
        recorder: What seals them.
        limit_bytes: The spool's bound.
    """

    def __init__(self, spool: Spool, recorder: Recorder, limit_bytes: int) -> None:
        self._spool, self._recorder, self._limit_bytes = spool, recorder, limit_bytes
        self._oldest: tuple[int, int | None] = (0, None)

    def measure(self) -> Backlog:
        """The backlog now.

        Raises:
            SpoolError: The spool cannot be read.
        """
        sealed_us = self._recorder.sealed_us or None
        batches, size = self._spool.depth()
        oldest_us = self._oldest_us() if batches else None
        return Backlog(
            batches, size, self._limit_bytes, self._recorder.dropped_batches, oldest_us,
            sealed_us if oldest_us is None else oldest_us,
        )  # fmt: skip

    def _oldest_us(self) -> int | None:
        number = self._spool.oldest_number()
        if number is not None and number != self._oldest[0]:
            for waiting in self._spool.waiting(0):
                self._oldest = waiting.number, _start_us(waiting.batch)
        return self._oldest[1] if number is not None else None


def _start_us(batch: Batch) -> int | None:
    return min((row[_START] for row in batch.rows.get(tables.SCRAPES.name, ())), default=None)
