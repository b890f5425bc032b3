"""Conversion of log batches to changes, and of changes to scrapes.

The log has no gaps: every change of a partition is a record. So the history is known up to the last
committed record, and exact, by the controller's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from collector.model import Answer, Moment, Notice, Reading, Scrape, Series

if TYPE_CHECKING:  # every agent imports this module, and few read the log
    from collector.sources.metadata_log.records import LogBatch
    from collector.sources.metadata_log.state import MetadataState

MARGIN_US: Final = 5_000_000
"""Distance behind the end of an epoch at which a record is committed. A leader resigns after 1.5
fetch timeouts (3 s by default) if the majority of the voters stops fetching (KAFKA-15489)."""

# A controller writes twice per second. A longer step is a clock that jumped.
_LONGEST_STEP_US: Final = 1_000_000
_CLOCK_US: Final = 1_000_000
_MOST_MOMENTS: Final = 500
_MOST_SERIES: Final = 100_000
"""Limits of one answer, so that many changes cost time and not memory."""
_LONGEST_US: Final = 3_600_000_000
"""A history without changes becomes one scrape per hour, so that its windows can be closed."""


def committed(batches: Iterable[LogBatch], margin_us: int = MARGIN_US) -> Iterator[LogBatch]:
    """Yield the batches that no election can remove: at least the margin before their epoch's end.

    Only plausible time between batches counts, because clocks can jump.
    """
    held: deque[tuple[int, LogBatch]] = deque()
    passed_us = start_us = at_us = 0
    epoch: int | None = None
    for batch in batches:
        passed_us += min(max(batch.at_us - at_us, 0), _LONGEST_STEP_US)
        at_us = batch.at_us
        if batch.place.epoch != epoch:
            epoch, start_us = batch.place.epoch, passed_us
        held.append((passed_us, batch))
        while held and passed_us - max(start_us, held[0][0]) >= margin_us:
            yield held.popleft()[1]


class History:
    """Applies committed batches and collects changes.

    Args:
        state: State at ``known_us``.
        known_us: Time of the last record in the state.
        reported_us: End of the reported history. None: the history starts now.

    Attributes:
        known_us: End of the known history. It never goes back, even if clocks do.
        reported_us: End of the reported history, including changes that are not yet taken.
    """

    def __init__(self, state: MetadataState, known_us: int, reported_us: int | None) -> None:
        self._state = state
        self._moments: list[Moment] = []
        self._notices: list[Notice] = []
        self._last: tuple[Reading, ...] = ()
        self._series = 0
        self._clock_back = False
        state.changed = True  # the first state is always reported
        state.notices.clear()
        self.known_us, self.reported_us = known_us, reported_us
        if reported_us is not None and reported_us < known_us:
            self._moments.append(Moment(reported_us, None))

    @property
    def full(self) -> bool:
        """Whether the changes should be taken before more are added."""
        return len(self._moments) >= _MOST_MOMENTS or self._series >= _MOST_SERIES

    def skip_to(self, reported_us: int) -> None:
        """Skip the history before an instant, because its windows are closed."""
        if self.reported_us is not None and reported_us > self.reported_us:
            self.reported_us, self._state.changed = reported_us, True

    def add(self, batch: LogBatch) -> None:
        """Apply the next batch.

        Raises:
            LookupError: It refers to an unknown topic or partition.
        """
        if batch.at_us > self.known_us:
            self._report(until_us=batch.at_us)
        back = batch.at_us < self.known_us - _CLOCK_US
        if back and not self._clock_back:
            old, new = str(self.known_us), str(batch.at_us)
            self._notices.append(Notice("controller_clock_back", Series(""), old, new))
        self._clock_back = back
        self._state.apply(batch.records)
        self.known_us = max(self.known_us, batch.at_us)
        if self.reported_us is not None and self.known_us >= self.reported_us:
            self._notices += [one._replace(at_us=self.known_us) for one in self._state.notices]
        self._state.notices.clear()

    def take(self) -> tuple[tuple[Reading, ...], tuple[Moment, ...], tuple[Notice, ...]]:
        """Return the current readings, and the changes and notices since the last call."""
        reported_us = self.reported_us or 0
        if self.known_us > reported_us or (
            0 < self.known_us == reported_us and self._state.changed
        ):
            self._append(self.known_us)
        moments, notices = tuple(self._moments), tuple(self._notices)
        self._moments, self._notices, self._series = [], [], 0
        return self._state.readings(), moments, notices

    def _report(self, until_us: int) -> None:
        """Add the state up to an instant, if it is new and not yet reported."""
        if self.reported_us is not None and until_us > self.reported_us and self._state.changed:
            self._append(max(self.known_us, self.reported_us))

    def _append(self, at_us: int) -> None:
        readings = self._state.readings()
        for reading in readings:
            if not any(reading is before for before in self._last):
                self._series += len(reading.zeros) + len(reading.values)
        self._moments.append(Moment(at_us, readings))
        self._last, self.reported_us = readings, at_us
        self._state.changed = False


def expand(scrape: Scrape) -> Iterator[Scrape]:
    """Yield the scrape itself, or one scrape per change of the history in its answer.

    A source that reads a log has the exact history. Each change becomes a scrape that was requested
    and answered at that instant, and an empty history yields no scrape. ``tick_us`` stays the
    original one, by the agent's clock; changes have the controller's clock.
    """
    answer = scrape.answer
    if answer is None or not any(reading.exact for reading in answer.readings):
        yield scrape
        return
    for moment, after in zip_longest(answer.moments, answer.moments[1:]):
        yield _at_moment(scrape, moment, answer if after is None else None)
        if after is not None:
            hour_us = moment.at_us - moment.at_us % _LONGEST_US + _LONGEST_US
            for at_us in range(hour_us, after.at_us, _LONGEST_US):
                yield _at_moment(scrape, moment._replace(at_us=at_us), None)


def _at_moment(scrape: Scrape, moment: Moment, whole: Answer | None) -> Scrape:
    """Return the scrape of one change. The last one has the fields that count once per scrape."""
    at_us = moment.at_us
    instant = replace(scrape, asked_us=at_us, answered_us=at_us, exact=True)
    if moment.readings is None:
        error = "the log no longer has this part of the history"
        return replace(instant, outcome="error", answer=None, error=error)
    if whole is None:
        return replace(instant, answer=Answer(moment.readings, 0))
    last = replace(whole, readings=moment.readings, moments=(), more=False)
    return replace(instant, answer=last)
