"""The guard against more series than a lake should hold: the excess becomes one ``__other__``."""

from __future__ import annotations

from dataclasses import replace

from collector.samples import Reading, Series
from lakehouse.tables import OTHER

DEFAULT_CAP = 100_000
"""Series per family and scrape."""


def capped(readings: tuple[Reading, ...], cap: int) -> tuple[tuple[Reading, ...], int]:
    """The readings with at most ``cap`` series (and one more per metric), and how many were folded.

    Series with a value are kept before those that are zero. Which ones are kept does not change
    from scrape to scrape as long as the series are the same.
    """
    excess = sum(len(reading.zeros) + len(reading.values) for reading in readings) - cap
    if excess <= 0:
        return readings, 0
    kept = []
    room = cap
    for reading in readings:
        reading, room = _fold(reading, room)  # noqa: PLW2901 - the folded one replaces it
        kept.append(reading)
    return tuple(kept), excess


def _fold(reading: Reading, room: int) -> tuple[Reading, int]:
    total = len(reading.zeros) + len(reading.values)
    if total <= room:
        return reading, room - total
    values = sorted(reading.values, key=repr)
    zeros = sorted(reading.zeros, key=repr)[: max(0, room - len(values))]
    folded = [reading.values[series] for series in values[room:]]
    known = [value for value in folded if value is not None]
    other = _other(reading)
    kept = {series: reading.values[series] for series in values[:room]}
    if folded:
        kept[other] = sum(known) if known else None
        return replace(reading, zeros=frozenset(zeros), values=kept), 0
    return replace(reading, zeros=frozenset([*zeros, other]), values=kept), 0


def _other(reading: Reading) -> Series:
    example = next(iter(reading.values), None) or next(iter(reading.zeros))
    if example.topic is not None:
        return Series(reading.metric, topic=OTHER, group=OTHER if example.group else None)
    return Series(reading.metric, client_id=OTHER)
