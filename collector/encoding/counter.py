"""Runs of one counter metric: the increase of every series in each window."""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from collector.encoding.bronze_rows import Ledger, Piece
from collector.model import Reading, Series
from lakehouse.tables import FLAG_GAP, FLAG_INCREASE


class AnswerSpan(NamedTuple):
    """Request and response time, and the windows in which pieces can start (µs).

    Attributes:
        windows: Starts of the open windows. The last one has the response.
    """

    asked_us: int
    answered_us: int
    windows: tuple[int, ...] = ()


class Tally(msgspec.Struct):
    """Increase of one series in the current window."""

    total: float
    start: int
    since: int
    flags: tuple[str, ...] = ()


class CounterTrack(msgspec.Struct):
    """State of one counter metric on one source.

    A count restarts at zero if it falls, if its source restarts, or if its MBean is new or returns
    while the source is observed. The first count of a source that was not observed before only
    sets the baseline.

    Attributes:
        waiting: Start of the delayed increase, by series of ``add``.
    """

    baselines: dict[Series, float] = msgspec.field(default_factory=dict)
    started_us: int | None = None
    zeros: frozenset[Series] = frozenset()
    values: dict[Series, float | None] = msgspec.field(default_factory=dict)
    open: dict[Series, Tally] = msgspec.field(default_factory=dict)
    scrapes: int = 0
    confirmed_us: int | None = None
    answered_us: int = 0
    watched: bool = False
    waiting: dict[Series, int] = msgspec.field(default_factory=dict)

    def observe(
        self, reading: Reading, started_us: int, asked_us: int, answered_us: int, ledger: Ledger
    ) -> None:
        """Record a reading of cumulative counts."""
        quiet = (
            self.confirmed_us is not None
            and started_us == self.started_us
            and (reading.zeros is self.zeros or reading.zeros == self.zeros)
            and reading.values == self.values
        )
        if not quiet:
            counts = _counts(reading)
            self._drop_vanished(counts, answered_us, ledger)
            for series, count in counts.items():
                increase = self._increase(series, count, started_us)
                self._add(series, increase, answered_us, reading.flags)
            self.baselines = counts
            self.zeros, self.values = reading.zeros, dict(reading.values)
        self.started_us, self.watched = started_us, True
        self.scrapes += 1
        self.confirmed_us = asked_us

    def add(
        self,
        rises: Mapping[Series, float | None],
        delayed: Collection[Series],
        span: AnswerSpan,
        ledger: Ledger,
    ) -> None:
        """Record increases that another module computes.

        Args:
            rises: Increase by series. None if it is unknown.
            delayed: Series whose increase comes with a later response.
            span: Time of the response.
            ledger: The closed pieces.
        """
        for series in delayed:
            self._wait(series, span, ledger)
        self._drop_vanished({*rises, *delayed} if delayed else rises, span.answered_us, ledger)
        self.waiting = {s: at for s, at in self.waiting.items() if s in rises or s in delayed}
        for series, increase in rises.items():
            if increase is None:
                self._interrupt(series, span, ledger)
            elif series in self.waiting:
                self._resume(series, increase, span, ledger)
            else:
                self._add(series, increase, span.answered_us)
        self.scrapes += 1
        self.confirmed_us, self.answered_us = span.asked_us, span.answered_us

    def leave(self, ended: Collection[Series]) -> None:
        """Stop counting series of ``add`` that lost their baseline."""
        for series in ended:
            self.open.pop(series, None)

    def give_up(self, from_us: int, end_us: int, window_us: int, ledger: Ledger) -> None:
        """Record delayed increases as unknown in the windows that are about to be closed."""
        until_us = min(end_us, self.answered_us)
        first_us = until_us - until_us % window_us - window_us
        for series, since_us in self.waiting.items():
            if since_us < until_us:
                starts = max(since_us, from_us, first_us), max(since_us, first_us + window_us)
                self._fill(series, None, (*starts, until_us), ledger)
                self.waiting[series] = until_us

    def cut(self, window_us: int, ledger: Ledger) -> None:
        """End every tally at a window start. The next one starts at zero."""
        for series, tally in self.open.items():
            if tally.start < window_us:
                self._close(series, tally, window_us, ledger)
                flags = tuple(flag for flag in tally.flags if flag != FLAG_GAP)
                self.open[series] = Tally(0.0, window_us, self.scrapes, flags)

    def stop(self, end_us: int, ledger: Ledger) -> None:
        """End coverage: end every tally and keep the baselines."""
        for series, tally in self.open.items():
            ended_us = self._close(series, tally, end_us, ledger)
            if self.answered_us:  # another module has the baselines of ``add``
                self.waiting[series] = ended_us
        self.open.clear()
        self.confirmed_us = None

    def _increase(self, series: Series, count: float, started_us: int) -> float:
        before = self.baselines.get(series)
        if before is None:
            return count if self.watched else 0.0
        if self.started_us != started_us or count < before:
            return count
        return count - before

    def _add(self, series: Series, rise: float, at_us: int, flags: tuple[str, ...] = ()) -> None:
        tally = self.open.get(series)
        if tally is None:
            if rise and self.confirmed_us is None:
                flags = (*flags, FLAG_GAP)
            self.open[series] = Tally(rise, at_us, self.scrapes, flags)
        else:
            tally.total += rise

    def _wait(self, series: Series, span: AnswerSpan, ledger: Ledger) -> None:
        """End the tally of a series at its last increase."""
        since_us, tally = span.answered_us, self.open.pop(series, None)
        if tally is not None:
            since_us = self._close(series, tally, self.answered_us, ledger)
        self.waiting.setdefault(series, since_us)

    def _resume(self, series: Series, rise: float, span: AnswerSpan, ledger: Ledger) -> None:
        """Add a delayed increase, from the start of its delay."""
        since_us = self.waiting.pop(series)
        start_us, flags = span.answered_us, tuple[str, ...]()
        if span.windows and since_us < span.answered_us:
            starts = [max(since_us, start) for start in span.windows]
            self._fill(series, 0.0, starts, ledger)
            start_us = starts[-1]
            is_longer = since_us < starts[0] and self.confirmed_us is not None
            flags = (FLAG_GAP,) if rise and is_longer else ()
        self._add(series, rise, start_us, flags)

    def _fill(
        self, series: Series, value: float | None, instants: Sequence[int], ledger: Ledger
    ) -> None:
        """Add a piece between consecutive instants."""
        for start, end in pairwise(instants):
            if start < end:
                ledger.add(Piece(series, value, start, end, 0, 0, 1, (FLAG_INCREASE,)))

    def _interrupt(self, series: Series, span: AnswerSpan, ledger: Ledger) -> None:
        """Add a piece without a value: the increase since the last scrape is unknown."""
        if series in self.open:
            self._wait(series, span, ledger)
        since_us = self.waiting.pop(series, span.answered_us)
        starts = [max(since_us, start) for start in span.windows]
        self._fill(series, None, [*starts, span.answered_us], ledger)
        self.open[series] = Tally(0.0, span.answered_us, self.scrapes)

    def _drop_vanished(self, present: Collection[Series], answered_us: int, ledger: Ledger) -> None:
        for series in [series for series in self.open if series not in present]:
            self._close(series, self.open.pop(series), answered_us, ledger)

    def _close(self, series: Series, tally: Tally, end_us: int, ledger: Ledger) -> int:
        """End a tally and return the end of its piece."""
        if tally.total:  # an increase at the instant of the end must not be lost
            end_us = max(end_us, tally.start + 1)
        if end_us > tally.start:
            flags = (FLAG_INCREASE, *tally.flags)
            seen = self.scrapes - tally.since
            ledger.add(Piece(series, tally.total, tally.start, end_us, 0, 0, seen, flags))
        return max(end_us, tally.start)


def _counts(reading: Reading) -> dict[Series, float]:
    counts = {series: value for series, value in reading.values.items() if value is not None}
    return counts | dict.fromkeys(reading.zeros, 0.0)
