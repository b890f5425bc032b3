"""Readings of MBeans, and the answer they make: the same whatever way the values came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.samples import Answer, Reading
from collector.sources.cap import within_cap
from collector.sources.unchanged import Unchanged
from lakehouse.tables import FLAG_KNOWN_WRONG

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.catalogue import Metric
    from collector.samples import Series
    from collector.sources.values import Values


class Readings:
    """Makes the readings of one JVM; another one needs its own.

    Args:
        version: Its Kafka version, if known.
    """

    def __init__(self, version: str | None) -> None:
        self._version = version
        self._unchanged = Unchanged()

    def reading(self, metric: Metric, zeros: frozenset[Series], values: Values) -> Reading:
        """The reading of a metric, flagged where this version is known to report it wrongly."""
        flags = (FLAG_KNOWN_WRONG,) if metric.wrong_in(self._version) else ()
        same = self._unchanged.same(metric.name, zeros)
        return Reading(metric.name, metric.kind, same, values, flags)


def series_count(readings: Iterable[Reading]) -> int:
    """How many series these are."""
    return sum(len(reading.zeros) + len(reading.values) for reading in readings)


def answer_of(readings: tuple[Reading, ...], cap: int) -> Answer:
    """The answer with these readings, each series one bean, within the cap of their family."""
    return within_cap(Answer(readings, series_count(readings)), cap)
