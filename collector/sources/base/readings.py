"""Conversion of raw values to readings and an answer, for all transports."""

import math
from collections.abc import Mapping
from typing import Any, cast

from collector.catalogue import Metric
from collector.errors import SourceDataError
from collector.model import Answer, Reading, Series
from collector.sources.base.beans import text_of, value_text
from collector.sources.base.lake_limits import within_cap
from lakehouse.tables import FLAG_KNOWN_WRONG

Values = Mapping[Series, float | None]
"""Values by series. None: NaN (observed, idle)."""


def number_of(value: object, where: str, name: Any, metric: Metric) -> float | None:
    """Return a raw value as a number: true is 1, false is 0, NaN is None.

    A composite becomes the number of the metric's item, and a text the number of its state.

    Args:
        value: Raw value.
        where: The source, for error texts.
        name: Object name of the MBean, for error texts; text or Java's ObjectName.
        metric: The metric.

    Raises:
        SourceDataError: The value is not a number, or is infinite.
    """
    value = _item(value, metric)
    number = _float(value)
    if math.isinf(number):
        shown = " ".join(value_text(value)[:80].split())
        raise SourceDataError(
            f"{where}: {text_of(name):.200} {metric.attribute_text} is {shown}, not a number;"
            f" correct or remove {metric.name} in the catalogue"
        )
    return None if math.isnan(number) else number


def split(values: Values) -> tuple[frozenset[Series], dict[Series, float | None]]:
    """Return the series that are zero, and the values of the others."""
    zeros = frozenset(series for series, value in values.items() if value == 0)
    return zeros, {series: value for series, value in values.items() if value != 0}


def _item(value: object, metric: Metric) -> object:
    if metric.item is not None:
        if isinstance(value, Mapping):
            value = value.get(metric.item, value)
        elif (composite := cast("Any", value)) and getattr(composite, "getCompositeType", None):
            value = composite.get(metric.item) if composite.containsKey(metric.item) else value
    if metric.states and not isinstance(value, (int, float)):
        text = value_text(value)
        return metric.states.get(text, metric.states.get("*", value))
    return value


def _float(value: object) -> float:
    """Return the value as a number. Infinity: it is not a number."""
    if not isinstance(value, (int, float)):
        return math.inf
    try:
        return float(value)
    except OverflowError:
        return math.inf


class Readings:
    """Creates the readings of one JVM or cluster. Another JVM needs another object.

    Args:
        version: Kafka version, if known.
    """

    def __init__(self, version: str | None = None) -> None:
        self._version = version
        self._zeros: dict[str, frozenset[Series]] = {}

    def reading(self, metric: Metric, zeros: frozenset[Series], values: Values) -> Reading:
        """Return the reading of a metric, with a flag if this Kafka version reports it wrongly.

        If the zeros are equal to the previous ones, they are the same object.
        """
        flags = (FLAG_KNOWN_WRONG,) if metric.wrong_in(self._version) else ()
        if self._zeros.get(metric.name) != zeros:
            self._zeros[metric.name] = zeros
        return Reading(metric.name, metric.kind, self._zeros[metric.name], values, flags)


class ExactGauge:
    """Values of one metric by partition, which are exact from an instant on, and their reading."""

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._values: dict[Series, float] = {}
        self._zeros: frozenset[Series] = frozenset()
        self._reading: Reading | None = None

    def set(self, topic: str, partition: int, value: float | None) -> bool:
        """Set or remove a value. Return True if it changed."""
        series = Series(self._metric, topic, partition)
        if self._values.get(series) == value:
            return False
        self._reading = None
        if value is None:
            del self._values[series]
        else:
            self._values[series] = float(value)
        return True

    def reading(self) -> Reading:
        """Return the reading; the same object while it is unchanged."""
        if self._reading is None:
            zeros, values = split(self._values)
            self._zeros = self._zeros if self._zeros == zeros else zeros
            self._reading = Reading(self._metric, "gauge", self._zeros, values, exact=True)
        return self._reading


def answer_of(readings: tuple[Reading, ...], cap: int, **more: Any) -> Answer:
    """Return an answer with these readings, within the series limit of their family."""
    count = sum(len(reading.zeros) + len(reading.values) for reading in readings)
    return within_cap(Answer(readings, count, **more), cap)
