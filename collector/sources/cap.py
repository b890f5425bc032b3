"""The guard against more series than a lake should hold, and against names that it cannot hold.

The excess of a gauge becomes one series ``__other__`` per metric, and so do series under a
stand-in. Of a counter it is left out: a sum of counts over a set that changes rises and falls
without any event. Both are counted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from collector.samples import Moment, Reading, Series
from collector.sources.names import is_stand_in
from lakehouse.tables import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.samples import Answer


class _Sifted(NamedTuple):
    """Zero series whose names the lake can hold, the same with ``__other__``, and how many not."""

    zeros: frozenset[Series]
    with_other: frozenset[Series]
    refused: int


_SIFTED: Final[WeakKeyDictionary[frozenset[Series], _Sifted]] = WeakKeyDictionary()
"""A source hands over the same set again while nothing changed: it is looked through once."""


def capped(readings: tuple[Reading, ...], cap: int) -> tuple[tuple[Reading, ...], int]:
    """The readings with at most ``cap`` series (and one more per metric), and how many were folded.

    Of a gauge, series with a value are kept before those that are zero; of a counter, the first by
    name, so that none comes or goes because it counts. A stand-in is never kept.
    """
    folded = 0
    kept = []
    room = cap
    for reading in readings:
        named, refused = _without_stand_ins(reading)
        fold = _fold if reading.kind == "gauge" else _cut
        fitting, excess = fold(named, room)
        kept.append(fitting)
        folded += refused + excess
        room = max(0, room - len(fitting.zeros) - len(fitting.values))
    return tuple(kept) if folded else readings, folded


def within_cap(answer: Answer, cap: int) -> Answer:
    """The answer with no more than ``cap`` series, now and at each of its moments (see capped)."""
    readings, dropped = capped(answer.readings, cap)
    moments = tuple(
        Moment(at_us, known and capped(known, cap)[0]) for at_us, known in answer.moments
    )
    dropped_series = answer.dropped_series + dropped
    return replace(answer, readings=readings, dropped_series=dropped_series, moments=moments)


def _without_stand_ins(reading: Reading) -> tuple[Reading, int]:
    sifted = _SIFTED.get(reading.zeros)
    if sifted is None:
        sifted = _SIFTED[reading.zeros] = _sift(reading.zeros)
    refused = {series for series in reading.values if is_stand_in(series)}
    if not refused:
        if not sifted.refused:
            return reading, 0
        zeros = sifted.with_other if reading.kind == "gauge" else sifted.zeros
        return replace(reading, zeros=zeros), sifted.refused
    values = {series: value for series, value in reading.values.items() if series not in refused}
    if reading.kind == "gauge":
        values[_other(next(iter(refused)))] = _sum(reading, refused)
    return replace(reading, zeros=sifted.zeros, values=values), sifted.refused + len(refused)


def _sift(zeros: frozenset[Series]) -> _Sifted:
    refused = frozenset(series for series in zeros if is_stand_in(series))
    if not refused:
        return _Sifted(frozenset(), frozenset(), 0)
    kept = zeros - refused
    return _Sifted(kept, kept | {_other(next(iter(refused)))}, len(refused))


def _fold(reading: Reading, room: int) -> tuple[Reading, int]:
    if len(reading.zeros) + len(reading.values) <= room:
        return reading, 0
    other = _other(next(iter(reading.values), None) or next(iter(reading.zeros)))
    values = sorted(reading.values.keys() - {other}, key=repr)
    zeros = sorted(reading.zeros - {other}, key=repr)
    kept_zeros = zeros[: max(0, room - len(values))]
    excess = max(0, len(values) - room) + len(zeros) - len(kept_zeros)
    kept = {series: reading.values[series] for series in values[:room]}
    folded = [*values[room:], *({other} & reading.values.keys())]
    if folded:
        kept[other] = _sum(reading, folded)
    elif excess or other in reading.zeros:
        kept_zeros.append(other)
    return replace(reading, zeros=frozenset(kept_zeros), values=kept), excess


def _cut(reading: Reading, room: int) -> tuple[Reading, int]:
    names = sorted([*reading.values, *reading.zeros], key=repr)
    if len(names) <= room:
        return reading, 0
    kept = frozenset(names[:room])
    values = {series: value for series, value in reading.values.items() if series in kept}
    return replace(reading, zeros=reading.zeros & kept, values=values), len(names) - room


def _sum(reading: Reading, folded: Iterable[Series]) -> float | None:
    known = [value for series in folded if (value := reading.values[series]) is not None]
    return sum(known) if known else None


def _other(example: Series) -> Series:
    if example.topic is not None:
        return Series(example.metric, topic=OTHER, group=OTHER if example.group else None)
    return Series(example.metric, client_id=OTHER)
