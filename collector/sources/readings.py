"""From values of beans to readings and an answer within the cap on series, however they are read.

The cap is against more than a lake should hold, and against names that it cannot hold. The excess
of a gauge becomes one series ``__other__`` per metric, and so do series under a stand-in. Of a
counter it is left out: a sum of counts over a set that changes rises and falls without any event.
Both are counted.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from collector.catalogue import Metric
from collector.errors import SourceDataError
from collector.model import Answer, Moment, Reading, Series
from collector.sources.jmx.object_names import is_stand_in, text_of
from lakehouse.tables import FLAG_KNOWN_WRONG, OTHER

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
        shown = " ".join(text_of(value)[:80].split())
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
        text = text_of(value)
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


_Sets = WeakKeyDictionary[frozenset[Series], frozenset[Series]]
# A source hands over the same set again while nothing changed: it is looked through once, and what
# is kept of it is the same set again, too.
_STAND_INS: Final[_Sets] = WeakKeyDictionary()
_KEPT: Final[_Sets] = WeakKeyDictionary()


def capped(readings: tuple[Reading, ...], cap: int) -> tuple[tuple[Reading, ...], int]:
    """The readings with at most ``cap`` series (and one more per metric), and how many were folded.

    A gauge keeps series with a value before those that are zero; a counter keeps the first by name,
    so that none comes or goes because it counts. A stand-in is never kept.
    """
    folded = 0
    kept = []
    room = cap
    for reading in readings:
        fitting, excess = _fitting(reading, room)
        kept.append(fitting)
        folded += excess
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


def _fitting(reading: Reading, room: int) -> tuple[Reading, int]:
    refused = _stand_ins(reading.zeros) | {one for one in reading.values if is_stand_in(one)}
    if not refused and len(reading.zeros) + len(reading.values) <= room:
        return reading, 0
    is_gauge = reading.kind == "gauge"
    kept = (reading.zeros | reading.values.keys()) - refused
    if len(kept) > room:
        first = sorted(kept, key=lambda one: (is_gauge and one in reading.zeros, repr(one)))
        kept = frozenset(first[:room])
    zeros = reading.zeros & kept
    values = {one: value for one, value in reading.values.items() if one in kept}
    folded = [one for one in (*reading.values, *reading.zeros) if one not in kept]
    if is_gauge:
        other = _other(folded[0])
        if folded[0] in reading.values:
            values[other] = _sum(reading.values.get(one) for one in folded)
        else:
            zeros |= {other}
    same = _KEPT.get(reading.zeros)
    if same != zeros:
        same = _KEPT[reading.zeros] = zeros  # read once: sources have threads of their own
    return replace(reading, zeros=same, values=values), len(folded)


def _stand_ins(zeros: frozenset[Series]) -> frozenset[Series]:
    known = _STAND_INS.get(zeros)
    if known is None:
        known = _STAND_INS[zeros] = frozenset(series for series in zeros if is_stand_in(series))
    return known


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _other(example: Series) -> Series:
    if example.topic is not None:
        return Series(example.metric, topic=OTHER, group=OTHER if example.group else None)
    return Series(example.metric, client_id=OTHER)
