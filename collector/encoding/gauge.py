"""Runs of one gauge metric: the value that every series held, and since when."""

from __future__ import annotations

from itertools import chain
from typing import Final

import msgspec

from collector.encoding.fold import Ledger, Piece
from collector.model import Reading, Series
from lakehouse.tables import FLAG_NEXT_POSITIVE, FLAG_PREVIOUS_POSITIVE

_ABSENT: Final = float("-inf")  # no bean says so: it stands for a series that is not there


class OpenRun(msgspec.Struct):
    """A run that goes on; ``since`` is the track's scrape count when it began."""

    value: float | None
    start: int
    lead: int
    since: int
    flags: tuple[str, ...] = ()
    before: int | None = None


class GaugeTrack(msgspec.Struct):
    """The state of one gauge metric on one source.

    A scrape that changes nothing costs one comparison, whatever the number of series: open runs
    do not count their scrapes, the track does.

    Attributes:
        memory_us: How long the bean goes on showing a value after its cause has ended.
        confirmed_us: When the last successful scrape was requested; None without coverage.
        exact: Its readings hold from their very instant on and to the next: no run has an edge.
    """

    memory_us: int = 0
    zeros: frozenset[Series] = frozenset()
    values: dict[Series, float | None] = msgspec.field(default_factory=dict)
    flags: tuple[str, ...] = ()
    open: dict[Series, OpenRun] = msgspec.field(default_factory=dict)
    scrapes: int = 0
    confirmed_us: int | None = None
    exact: bool = False

    def observe(self, reading: Reading, asked_us: int, answered_us: int, ledger: Ledger) -> None:
        """Take in one successful reading."""
        quiet = (
            self.confirmed_us is not None
            and (reading.zeros is self.zeros or reading.zeros == self.zeros)
            and reading.values == self.values
            and reading.flags == self.flags
        )
        self.exact = self.exact or reading.exact
        if not quiet:
            self._change(reading, answered_us, ledger)
        self.scrapes += 1
        self.confirmed_us = asked_us

    def cut(self, window_us: int, ledger: Ledger) -> None:
        """End every run at a window's start and carry it over, unconfirmed."""
        for series, run in self.open.items():
            if run.start >= window_us:
                continue
            run.before = ledger.add(self._piece(series, run, window_us))
            run.start, run.lead, run.since = window_us, 0, self.scrapes
            run.flags = tuple(flag for flag in run.flags if flag != FLAG_PREVIOUS_POSITIVE)

    def stop(self, end_us: int, ledger: Ledger) -> None:
        """Coverage ends: end every run, with the time since the last scrape as its tail."""
        for series, run in self.open.items():
            self._close(series, run, end_us, ledger)
        self.open.clear()
        self.zeros, self.values, self.confirmed_us = frozenset(), {}, None

    def _change(self, reading: Reading, answered_us: int, ledger: Ledger) -> None:
        edge = self._edge(answered_us)
        reflagged = reading.flags != self.flags
        for series, run in list(self.open.items()):
            value = _value(reading, series)
            if value == run.value and not reflagged:
                continue
            del self.open[series]
            if value == _ABSENT:
                self._close(series, run, answered_us, ledger)
            else:
                new = OpenRun(value, answered_us, edge, self.scrapes, reading.flags)
                self._follow(series, run, new, ledger)
        for series in chain(reading.values, reading.zeros):
            if series not in self.open:
                value = _value(reading, series)
                self.open[series] = OpenRun(value, answered_us, edge, self.scrapes, reading.flags)
        self.zeros, self.values, self.flags = reading.zeros, dict(reading.values), reading.flags

    def _edge(self, at_us: int) -> int:
        """How long before an instant a change may have happened already."""
        return 0 if self.exact or self.confirmed_us is None else at_us - self.confirmed_us

    def _follow(self, series: Series, run: OpenRun, new: OpenRun, ledger: Ledger) -> None:
        if not (_positive(run.value) and _positive(new.value)):
            self._close(series, run, new.start, ledger)
        elif self.memory_us:
            new.lead, new.before = 0, self._end(series, run, new.start, 0, ledger)
        else:
            run.flags = (*run.flags, FLAG_NEXT_POSITIVE)
            new.flags = (*new.flags, FLAG_PREVIOUS_POSITIVE)
            # Only as far as the run's own piece: the one before a cut holds another positive value
            # for sure, and its window may not look at the next one to learn that this is no edge.
            edge = min(new.lead, new.start - run.start)
            self._end(series, run, new.start, edge, ledger)
        self.open[series] = new

    def _close(self, series: Series, run: OpenRun, end_us: int, ledger: Ledger) -> None:
        """End a run: the value is no longer positive, or coverage has ended."""
        memory_us = self.memory_us if _positive(run.value) else 0
        self._end(series, run, end_us, self._edge(end_us) + memory_us, ledger)

    def _end(
        self, series: Series, run: OpenRun, end_us: int, edge: int, ledger: Ledger
    ) -> int | None:
        number = run.before
        if end_us > run.start:  # else carried over a cut and contradicted at that very instant
            number = ledger.add(self._piece(series, run, end_us))
        ledger.shorten(number, edge)
        return number

    def _piece(self, series: Series, run: OpenRun, end_us: int) -> Piece:
        seen = self.scrapes - run.since
        return Piece(series, run.value, run.start, end_us, run.lead, 0, seen, run.flags, run.before)


def _value(reading: Reading, series: Series) -> float | None:
    if series in reading.values:
        return reading.values[series]
    return 0.0 if series in reading.zeros else _ABSENT


def _positive(value: float | None) -> bool:
    return value is not None and value > 0
