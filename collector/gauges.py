"""Runs of one gauge metric: the value that every series held, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from collector.ledger import Ledger, Piece
from collector.samples import Reading, Series
from lakehouse.tables import FLAG_NEXT_POSITIVE, FLAG_PREVIOUS_POSITIVE

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """What is known of one gauge metric on one source.

    A scrape that changes nothing costs one comparison, whatever the number of series: open runs
    do not count their scrapes, the track does.

    Attributes:
        memory_us: How long the bean goes on showing a value after its cause has ended.
        confirmed_us: When the last successful scrape was asked; None while nothing vouches.
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
        """Nothing vouches any longer: end every run, the time since the last scrape as its tail."""
        edge = self._edge(end_us)
        for series, run in self.open.items():
            self._end(series, run, end_us, edge, ledger)
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
                self._end(series, run, answered_us, edge, ledger)
            else:
                self._follow(series, run, value, answered_us, edge, reading.flags, ledger)
        for series, value in _present(reading):
            if series not in self.open:
                self.open[series] = OpenRun(value, answered_us, edge, self.scrapes, reading.flags)
        self.zeros, self.values, self.flags = reading.zeros, dict(reading.values), reading.flags

    def _edge(self, at_us: int) -> int:
        """How long before an instant a change may have happened already."""
        return 0 if self.exact or self.confirmed_us is None else at_us - self.confirmed_us

    def _follow(
        self,
        series: Series,
        run: OpenRun,
        value: float | None,
        at_us: int,
        edge: int,
        flags: tuple[str, ...],
        ledger: Ledger,
    ) -> None:
        new = OpenRun(value, at_us, edge, self.scrapes, flags)
        if not (_positive(run.value) and _positive(value)):
            self._end(series, run, at_us, edge, ledger)
        elif self.memory_us:
            new.lead, new.before = 0, self._end(series, run, at_us, 0, ledger, goes_on=True)
        else:
            run.flags = (*run.flags, FLAG_NEXT_POSITIVE)
            new.flags = (*flags, FLAG_PREVIOUS_POSITIVE)
            # Only as far as the run's own piece: the one before a cut holds another positive value
            # for sure, and its window may not look at the next one to learn that this is no edge.
            self._end(series, run, at_us, min(edge, at_us - run.start), ledger, goes_on=True)
        self.open[series] = new

    def _end(
        self,
        series: Series,
        run: OpenRun,
        end_us: int,
        edge: int,
        ledger: Ledger,
        *,
        goes_on: bool = False,
    ) -> int | None:
        if _positive(run.value) and not goes_on:
            edge += self.memory_us
        if end_us <= run.start:  # carried over a cut and contradicted at that very instant
            ledger.shorten(run.before, edge)
            return run.before
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


def _present(reading: Reading) -> Iterator[tuple[Series, float | None]]:
    yield from reading.values.items()
    for series in reading.zeros:
        yield series, 0.0


def _positive(value: float | None) -> bool:
    return value is not None and value > 0
