"""From batches of the log to the moments at which something changed, and those as scrapes.

The log has no gaps: between two records nothing was decided. So the history is known up
to its last committed record, and to the instant, by the controller's clock.
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
"""A leader that the majority of the voters stopped fetching from resigns after 1.5 fetch timeouts
(3 s by default; KAFKA-15489). A record followed by more than that in its leader's epoch was
committed."""

# A controller writes twice a second; more is a clock that jumped.
_LONGEST_STEP_US: Final = 1_000_000
_CLOCK_US: Final = 1_000_000
_MOST_MOMENTS: Final = 500
_MOST_SERIES: Final = 100_000
"""Limits of one answer, so that a storm of changes costs time and not memory."""
_LONGEST_US: Final = 3_600_000_000
"""A history without changes becomes a scrape an hour, so that its windows can be sealed."""


def committed(batches: Iterable[LogBatch], margin_us: int = MARGIN_US) -> Iterator[LogBatch]:
    """The batches that no election can take back: those the margin behind the end of their epoch.

    The time between batches is counted as far as it is plausible, for clocks are set now and then.
    """
    held: deque[tuple[int, LogBatch]] = deque()
    passed_us = began_us = at_us = 0
    epoch: int | None = None
    for batch in batches:
        passed_us += min(max(batch.at_us - at_us, 0), _LONGEST_STEP_US)
        at_us = batch.at_us
        if batch.place.epoch != epoch:
            epoch, began_us = batch.place.epoch, passed_us
        held.append((passed_us, batch))
        while held and passed_us - max(began_us, held[0][0]) >= margin_us:
            yield held.popleft()[1]


class History:
    """Applies committed batches and collects moments.

    Args:
        state: As it was at ``known_us``.
        known_us: The instant of the last record in it.
        reported_us: Up to when the history was reported already; None: it begins now.

    Attributes:
        known_us: Up to when the history is known; never goes back, whatever clocks did.
        reported_us: Up to when it is reported, the moments not yet taken included.
    """

    def __init__(self, state: MetadataState, known_us: int, reported_us: int | None) -> None:
        self._state = state
        self._moments: list[Moment] = []
        self._notices: list[Notice] = []
        self._last: tuple[Reading, ...] = ()
        self._series = 0
        self._clock_back = False
        state.changed = True  # the first state is reported in any case
        state.notices.clear()
        self.known_us, self.reported_us = known_us, reported_us
        if reported_us is not None and reported_us < known_us:
            self._moments.append(Moment(reported_us, None))

    @property
    def full(self) -> bool:
        """Whether the moments should be taken before more are made."""
        return len(self._moments) >= _MOST_MOMENTS or self._series >= _MOST_SERIES

    def skip_to(self, reported_us: int) -> None:
        """Report nothing before an instant: it was sealed meanwhile."""
        if self.reported_us is not None and reported_us > self.reported_us:
            self.reported_us, self._state.changed = reported_us, True

    def add(self, batch: LogBatch) -> None:
        """Take in the next batch.

        Raises:
            LookupError: It speaks of a topic or partition that there is not.
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
        """The readings of now, and the moments since the last time, up to the end of the known."""
        reported_us = self.reported_us or 0
        if self.known_us > reported_us or (
            0 < self.known_us == reported_us and self._state.changed
        ):
            self._append(self.known_us)
        moments, notices = tuple(self._moments), tuple(self._notices)
        self._moments, self._notices, self._series = [], [], 0
        return self._state.readings(), moments, notices

    def _report(self, until_us: int) -> None:
        """Add the state that holds up to an instant, if it is new and was not reported before."""
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
    """The attempt itself, or the moments of the history that it brought.

    A source that reads a log knows the past, to the instant. Each moment becomes a scrape that was
    asked and answered then; an empty history gives none. ``tick_us`` remains the attempt's, by the
    agent's clock; the moments are by another clock.
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
    """One moment; the last one has the fields that are counted once an attempt."""
    at_us = moment.at_us
    instant = replace(scrape, asked_us=at_us, answered_us=at_us, exact=True)
    if moment.readings is None:
        error = "the log does not reach back that far: what happened is not known"
        return replace(instant, outcome="error", answer=None, error=error)
    if whole is None:
        return replace(instant, answer=Answer(moment.readings, 0))
    last = replace(whole, readings=moment.readings, moments=(), more=False)
    return replace(instant, answer=last)
