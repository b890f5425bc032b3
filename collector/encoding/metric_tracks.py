"""State of one metric on one source, and its runs.

A gauge: the value of every series and its interval. A counter: the increase of every series in each
window.
"""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, pairwise
from typing import Final, NamedTuple

import msgspec

from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import Ledger, Piece
from collector.model import Reading, Series
from lakehouse.tables import FLAG_GAP, FLAG_INCREASE, FLAG_NEXT_POSITIVE, FLAG_PREVIOUS_POSITIVE

_ABSENT: Final = float("-inf")  # value of an absent series; no MBean has it


class OpenRun(msgspec.Struct):
    """An open run. ``since`` is the track's number of scrapes at its start.

    ``may`` is True for a wait that the broker announced and no longer shows: the whole run is
    uncertain.
    """

    value: float | None
    start: int
    lead: int
    since: int
    flags: tuple[str, ...] = ()
    before: int | None = None
    may: bool = False


class GaugeTrack(msgspec.Struct):
    """State of one gauge metric on one source.

    A scrape without a change costs one comparison for any number of series: the track counts the
    scrapes, not each open run.

    Attributes:
        delays: Delay of the MBean. The values that it shows too long are waits (ms).
        announced: Waits longer than that (ms), and their latest end. A broker mutes a client above
            its quota for the announced time (KIP-219), but shows it for a shorter time.
        confirmed_us: Request time of the last successful scrape. None without coverage.
        exact: True if readings hold exactly from their instant to the next: no run is uncertain.
    """

    delays: Delays = Delays()
    zeros: frozenset[Series] = frozenset()
    values: dict[Series, float | None] = msgspec.field(default_factory=dict)
    flags: tuple[str, ...] = ()
    open: dict[Series, OpenRun] = msgspec.field(default_factory=dict)
    scrapes: int = 0
    confirmed_us: int | None = None
    exact: bool = False
    announced: dict[Series, tuple[float, int]] = msgspec.field(default_factory=dict)

    def observe(self, reading: Reading, asked_us: int, answered_us: int, ledger: Ledger) -> None:
        """Record a reading."""
        same = reading.values == self.values
        waiting = {} if same and not self.announced else self._waiting(reading, answered_us)
        if waiting:
            zeros, values = reading.zeros - waiting.keys(), {**reading.values, **waiting}
            reading = dataclasses.replace(reading, zeros=zeros, values=values)
            same = values == self.values
        quiet = (
            self.confirmed_us is not None
            and (reading.zeros is self.zeros or reading.zeros == self.zeros)
            and same
            and reading.flags == self.flags
            and all(self.open[series].may for series in waiting)
        )
        self.exact = self.exact or reading.exact
        if not quiet:
            self._change(reading, waiting, answered_us, ledger)
        self.scrapes += 1
        self.confirmed_us = asked_us

    @property
    def reach_us(self) -> int:
        """Longest time before the last reading in which an open run can have ended."""
        if not self.open:
            return 0
        remembers = self.delays.memory_us and any(
            _positive(run.value) for run in self.open.values()
        )
        return self.delays.refresh_us + (self.delays.memory_us if remembers else 0)

    def cut(self, window_us: int, ledger: Ledger) -> None:
        """Split every run at a window start. The new part is unconfirmed."""
        for series, run in self.open.items():
            if run.start < window_us:
                run.before = ledger.add(self._piece(series, run, window_us))
                run.start, run.lead, run.since = window_us, 0, self.scrapes
                run.flags = tuple(flag for flag in run.flags if flag != FLAG_PREVIOUS_POSITIVE)

    def stop(self, end_us: int, ledger: Ledger) -> None:
        """End coverage: end every run. The time since the last scrape is uncertain."""
        for series, run in self.open.items():
            self._close(series, run, end_us, ledger)
        self.open.clear()
        self.zeros, self.values, self.confirmed_us = frozenset(), {}, None

    def _waiting(self, reading: Reading, now_us: int) -> dict[Series, float]:
        """Return running waits that the MBean no longer shows."""
        if not self.delays.memory_us:
            return {}
        for series, wait in reading.values.items():
            lasts_us = round((wait or 0.0) * 1000)
            if wait and lasts_us > self.delays.memory_us and self.values.get(series) != wait:
                self.announced[series] = wait, now_us + lasts_us
        self.announced = {one: it for one, it in self.announced.items() if it[1] > now_us}
        return {
            series: wait
            for series, (wait, _) in self.announced.items()
            if not _positive(reading.values.get(series))
        }

    def _change(
        self, reading: Reading, waiting: Collection[Series], answered_us: int, ledger: Ledger
    ) -> None:
        edge = self._edge(answered_us)
        reflagged = reading.flags != self.flags

        def opened(series: Series, lead: int) -> OpenRun:
            value, may = _value(reading, series), series in waiting
            return OpenRun(value, answered_us, lead, self.scrapes, reading.flags, may=may)

        for series, run in list(self.open.items()):
            value, may = _value(reading, series), series in waiting
            if value == run.value and may == run.may and not reflagged:
                continue
            del self.open[series]
            if value == _ABSENT:
                self._close(series, run, answered_us, ledger)
            elif may and not run.may:
                self._close(series, run, answered_us, ledger)
                self.open[series] = opened(series, 0)
            else:
                self._follow(series, run, opened(series, edge), ledger)
        for series in chain(reading.values, reading.zeros):
            if series not in self.open:
                self.open[series] = opened(series, edge)
        self.zeros, self.values, self.flags = reading.zeros, dict(reading.values), reading.flags

    def _edge(self, at_us: int) -> int:
        """Return the longest time before an instant in which a change can have happened."""
        if self.exact or self.confirmed_us is None:
            return 0
        return at_us - self.confirmed_us + self.delays.refresh_us

    def _follow(self, series: Series, run: OpenRun, new: OpenRun, ledger: Ledger) -> None:
        if not (_positive(run.value) and _positive(new.value)):
            self._close(series, run, new.start, ledger)
        elif self.delays.memory_us:
            new.lead, new.before = 0, self._end(series, run, new.start, 0, ledger)
        else:
            run.flags = (*run.flags, FLAG_NEXT_POSITIVE)
            new.flags = (*new.flags, FLAG_PREVIOUS_POSITIVE)
            # Only within the run's own piece: the piece before a window start has another positive
            # value, and its window cannot use the next window to detect that this is not an edge.
            edge = min(new.lead, new.start - run.start)
            self._end(series, run, new.start, edge, ledger)
        self.open[series] = new

    def _close(self, series: Series, run: OpenRun, end_us: int, ledger: Ledger) -> None:
        """End a run whose value is no longer positive, or whose coverage ended."""
        memory_us = self.delays.memory_us if _positive(run.value) else 0
        self._end(series, run, end_us, self._edge(end_us) + memory_us, ledger)

    def _end(
        self, series: Series, run: OpenRun, end_us: int, edge: int, ledger: Ledger
    ) -> int | None:
        number = run.before
        if end_us > run.start:  # otherwise it was split and changed at the same instant
            number = ledger.add(self._piece(series, run, end_us))
        ledger.shorten(number, edge)
        return number

    def _piece(self, series: Series, run: OpenRun, end_us: int) -> Piece:
        tail, seen = end_us - run.start if run.may else 0, self.scrapes - run.since
        span = run.value, run.start, end_us, run.lead, tail
        return Piece(series, *span, seen, run.flags, run.before)


def _value(reading: Reading, series: Series) -> float | None:
    if series in reading.values:
        return reading.values[series]
    return 0.0 if series in reading.zeros else _ABSENT


def _positive(value: float | None) -> bool:
    return value is not None and value > 0


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
