"""A trace with another load: so many of the partitions are written between any two scrapes."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from collector.model import Reading, Scrape, Series

_MOST: Final = {"kafka.log.size": 30_000}
"""By how much a log's size rises at most between two scrapes: bytes."""


def written(scrapes: Iterable[Scrape], share: float) -> Iterator[Scrape]:
    """The same scrapes with other sizes of logs.

    Args:
        scrapes: Whose series, instants and all other values are taken.
        share: Of the partitions, 0 to 1; which ones is drawn anew for every tick.
    """
    values: dict[Series, float] = {}
    for scrape in scrapes:
        if scrape.answer is None:
            yield scrape
            continue
        readings = tuple(
            _risen(one, scrape.tick_us, share, values) if one.metric in _MOST else one
            for one in scrape.answer.readings
        )
        yield replace(scrape, answer=replace(scrape.answer, readings=readings))


def _risen(reading: Reading, tick_us: int, share: float, values: dict[Series, float]) -> Reading:
    for series in (*reading.zeros, *reading.values):
        before = values.get(series, reading.values.get(series) or 0.0)
        name = f"{tick_us} {series.topic} {series.partition}"
        by = 1 + int(_drawn(f"{name} {reading.metric}") * _MOST[reading.metric])
        values[series] = before + by if _drawn(name) < share else before
    now = {series: values[series] for series in (*reading.zeros, *reading.values)}
    zeros = frozenset(series for series, value in now.items() if not value)
    told = {series: value for series, value in now.items() if value}
    return replace(reading, zeros=zeros, values=told)


def _drawn(for_what: str) -> float:
    """A number from 0 to 1 that depends on nothing else."""
    digest = hashlib.blake2b(for_what.encode(), digest_size=6).digest()
    return int.from_bytes(digest) / (1 << 48)
