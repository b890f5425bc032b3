"""Reads a family from a source that tells all values in one go: over HTTP, or from a process.

What comes out is the same as over RMI (see mbeans), though nothing is filtered on the other side:
only led partitions where the metric says so, zeros apart from values, NaN as observed and idle, and
the same set of series again while nothing changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.catalogue import Metric
from collector.errors import SourceError
from collector.samples import Partition, Series
from collector.sources.expected import IN_SYNC_COUNT
from collector.sources.names import series_of
from collector.sources.readings import Readings, answer_of
from collector.sources.values import number_of, split

if TYPE_CHECKING:
    from collector.catalogue import Family
    from collector.samples import Answer, Reading


class Asked(NamedTuple):
    """One attribute of all beans that fit an object name pattern."""

    pattern: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Failed:
    """What stands for a value that the other side could not read; ``reason`` is one line."""

    reason: str


Told = Mapping[Asked, Mapping[str, object]]
"""Values by bean name: a number, None for NaN, or ``Failed``. What is not there is absent."""

_IN_SYNC: Final = Metric(
    name="kafka.partition.in_sync_replicas",
    unit="{replica}",
    description="Only a leader knows who is in sync: on followers it is 0.",
    object=IN_SYNC_COUNT,
    labels={"topic": "topic", "partition": "partition"},
    led=True,
)

_WILDCARD: Final = re.compile(r"(?<!\\)(?:\\\\)*[*?]")
"""One that is not escaped."""
_HALF: Final = "\ud800"


def is_pattern(name: str) -> bool:
    """Whether an object name stands for many beans; no registered bean has such a name."""
    return _WILDCARD.search(name) is not None


def asked_for(family: Family) -> tuple[Asked, ...]:
    """All that must be asked for a family, each just once."""
    metrics = list(family.metrics)
    if any(metric.led for metric in metrics):
        metrics.append(_IN_SYNC)
    return tuple(dict.fromkeys(asked for metric in metrics for asked in _asked(metric)))


class BulkReader:
    """Makes answers of what was told; another JVM on the other side needs a new reader.

    Args:
        where: What is read, for messages.
        version: Kafka version of the other side, if known.
    """

    def __init__(self, where: str, version: str | None = None) -> None:
        self._where = where
        self._readings = Readings(version)
        self._series: dict[tuple[str, str], dict[str, Series | None]] = {}

    def answer(self, family: Family, told: Told) -> Answer:
        """The answer for a family of which everything in ``asked_for`` was told.

        Raises:
            SourceError: A value is not a number, or failed on the other side.
        """
        led = frozenset(
            Partition(series.topic or "", series.partition or 0)
            for series, count in self._values(_IN_SYNC, told).items()
            if count is not None and count > 0
        )
        readings = tuple(self._reading(metric, told, led) for metric in family.metrics)
        return answer_of(readings, family.cap)

    def _reading(self, metric: Metric, told: Told, led: frozenset[Partition]) -> Reading:
        found = self._values(metric, told, led if metric.led else None)
        return self._readings.reading(metric, *split(found))

    def _values(
        self, metric: Metric, told: Told, led: frozenset[Partition] | None = None
    ) -> dict[Series, float | None]:
        found: dict[Series, float | None] = {}
        for asked in _asked(metric):
            values = told.get(asked, {})
            for name, series in self._named(metric, asked.pattern, values).items():
                # A bean may stand under two names, of which the first counts.
                if series is None or series in found:
                    continue
                if led is None or (series.topic, series.partition) in led:
                    found[series] = self._number(values[name], name, metric)
        return found

    def _named(
        self, metric: Metric, pattern: str, values: Iterable[str]
    ) -> Mapping[str, Series | None]:
        before = self._series.get((metric.name, pattern), {})
        names = {
            name: before[name] if name in before else series_of(metric, pattern, _intact(name))
            for name in values
        }
        self._series[metric.name, pattern] = names
        return names

    def _number(self, value: object, name: str, metric: Metric) -> float | None:
        if isinstance(value, Failed):
            raise SourceError(
                f"{self._where}: {name:.200} {metric.attribute_name} failed in the broker:"
                f" {value.reason}"
            )
        number = None if value is None else number_of(value, self._where, name, metric)
        return 1.0 if metric.filter == "binary" and number is not None and number > 0 else number


def _intact(name: str) -> str:
    """The name; what was lost of it stays what it was: something that the lake cannot hold."""
    # Half a surrogate pair arrives as a question mark, which a registered bean's name never has.
    return _WILDCARD.sub(lambda found: found[0][:-1] + _HALF, name)


def _asked(metric: Metric) -> list[Asked]:
    return [Asked(pattern, metric.attribute_name) for pattern in metric.patterns]
