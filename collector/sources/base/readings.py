"""From values of beans to readings and an answer, for all ways of reading them."""

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
"""None where the bean says NaN (observed, idle)."""


def number_of(value: object, where: str, name: Any, metric: Metric) -> float | None:
    """A value as a number; true and false count as 1 and 0, and NaN is None.

    Of a composite it is the metric's item, and of a text the number of its state.

    Args:
        value: What was said.
        where: What is read, for messages.
        name: The object name of the bean, for messages; as text or as Java has it.
        metric: What it is read for.

    Raises:
        SourceDataError: It is no number, or infinite.
    """
    value = _item(value, metric)
    number = _float(value)
    if math.isinf(number):
        shown = " ".join(value_text(value)[:80].split())
        raise SourceDataError(
            f"{where}: {text_of(name):.200} {metric.attribute_text} is {shown}, not a number:"
            f" correct or remove {metric.name} in the catalogue"
        )
    return None if math.isnan(number) else number


def split(values: Values) -> tuple[frozenset[Series], dict[Series, float | None]]:
    """The series that are zero, and the values of the others."""
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
    """The value as a number; infinite where it is none."""
    if not isinstance(value, (int, float)):
        return math.inf
    try:
        return float(value)
    except OverflowError:
        return math.inf


class Readings:
    """Makes the readings of one JVM or cluster; another one needs its own.

    Args:
        version: Its Kafka version, if known.
    """

    def __init__(self, version: str | None = None) -> None:
        self._version = version
        self._zeros: dict[str, frozenset[Series]] = {}

    def reading(self, metric: Metric, zeros: frozenset[Series], values: Values) -> Reading:
        """The reading of a metric, flagged where this version is known to report it wrongly.

        Its zeros are the same object as before if they are equal.
        """
        flags = (FLAG_KNOWN_WRONG,) if metric.wrong_in(self._version) else ()
        if self._zeros.get(metric.name) != zeros:
            self._zeros[metric.name] = zeros
        return Reading(metric.name, metric.kind, self._zeros[metric.name], values, flags)


def answer_of(readings: tuple[Reading, ...], cap: int, **more: Any) -> Answer:
    """The answer with these readings, each series one bean, within the cap of their family."""
    count = sum(len(reading.zeros) + len(reading.values) for reading in readings)
    return within_cap(Answer(readings, count, **more), cap)
