"""Stale values, left out of answers: a copy lag while a copy to the remote tier is under way."""

from dataclasses import replace
from typing import NamedTuple

from collector.catalogue import Family
from collector.model import Answer, Reading, Series

Counts = dict[Series, float]


class _Work(NamedTuple):
    """The counters of a work as they were read last, by subject without a metric."""

    started: Counts
    ended: Counts
    under_way: frozenset[Series]


class StaleValues:
    """Leaves out values of which a metric's own counters say that they are of before.

    Work that has started and not ended is under way. Where several are at once, the end of one
    counts as that of all: counters do not say which. So what is left out is surely stale, and what
    is kept may be; nothing is known of what started before the first reading.
    """

    def __init__(self) -> None:
        self._before: dict[tuple[str, ...], _Work] = {}

    def removed_from(self, answer: Answer, family: Family) -> Answer:
        """The answer without values that work under way has made stale; such series are unknown."""
        waits = {one.name: one.written_after for one in family.metrics if one.written_after}
        if not waits:
            return answer
        by_name = {reading.metric: reading for reading in answer.readings}
        stale = {work: self._under_way(work, by_name) for work in set(waits.values())}
        readings = tuple(
            _without(one, stale[waits[one.metric]]) if one.metric in waits else one
            for one in answer.readings
        )
        return replace(answer, readings=readings)

    def _under_way(self, work: tuple[str, ...], readings: dict[str, Reading]) -> frozenset[Series]:
        first, *others = work
        started, ended = _counts(first, readings), dict[Series, float]()
        for name in others:
            for subject, count in _counts(name, readings).items():
                ended[subject] = ended.get(subject, 0.0) + count
        before = self._before.get(work, _Work(started, ended, frozenset()))
        under_way = frozenset(
            subject
            for subject, count in started.items()
            if ended.get(subject, 0.0) == before.ended.get(subject, 0.0)
            and (count > before.started.get(subject, 0.0) or subject in before.under_way)
        )
        self._before[work] = _Work(started, ended, under_way)
        return under_way


def _counts(metric: str, readings: dict[str, Reading]) -> Counts:
    reading = readings.get(metric)
    values = reading.values.items() if reading else ()
    return {series._replace(metric=""): count or 0.0 for series, count in values}


def _without(reading: Reading, stale: frozenset[Series]) -> Reading:
    if not stale:
        return reading
    series = {one._replace(metric=reading.metric) for one in stale}
    values = {one: value for one, value in reading.values.items() if one not in series}
    return replace(reading, zeros=reading.zeros - series, values=values)
