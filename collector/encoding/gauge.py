"""Runs of one gauge metric: the value of every series and its interval."""

import dataclasses
from collections.abc import Collection
from itertools import chain
from typing import Final

import msgspec

from collector.catalogue.entries import Delays
from collector.encoding.bronze_rows import Ledger, Piece
from collector.model import Reading, Series
from lakehouse.tables import FLAG_NEXT_POSITIVE, FLAG_PREVIOUS_POSITIVE

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
