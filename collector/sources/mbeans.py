"""Reads a family from any MBean server: what is above zero is asked of the server itself.

One query names the beans that exist, one names those above zero, and only those are read. The
names are turned into series only when they changed, and a census that did not change is handed over
as the same object: what a scrape costs follows from what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import jpype

from collector.errors import SourceError
from collector.samples import Answer, Partition, Reading, Series
from collector.sources.cap import DEFAULT_CAP, capped
from collector.sources.jvm import java
from collector.sources.names import series_of
from collector.sources.unchanged import Unchanged
from lakehouse.tables import FLAG_KNOWN_WRONG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.catalogue import Family, Metric

_LED: Final = "kafka.cluster:type=Partition,name=InSyncReplicasCount,topic=*,partition=*"

Beans = dict[Series, Any]
"""Object names by the series they stand for."""


class _Quiet(NamedTuple):
    """Beans that are not above zero: really zero, NaN, or to be looked at each time (negative)."""

    zeros: frozenset[Series]
    idle: Mapping[Series, float | None]
    others: Beans


class MBeanReader:
    """Reads families over one connection; a new connection needs a new reader.

    Args:
        connection: An MBeanServerConnection.
        where: What is read, for messages.
        version: Kafka version of the other side, if known.
        cap: Most series per family.
    """

    def __init__(
        self, connection: Any, where: str, version: str | None = None, cap: int = DEFAULT_CAP
    ) -> None:
        self._connection = connection
        self._where = where
        self._version = version
        self._cap = cap
        self._names: dict[tuple[str, str, str], Any] = {}
        self._fresh: set[tuple[str, str, str]] = set()
        self._zeros = Unchanged()
        self._derived: dict[tuple[str, str], tuple[tuple[Any, ...], Any]] = {}

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: An attribute is not a number, or failed inside the broker.
        """
        self._fresh.clear()
        readings = tuple(self._reading(metric) for metric in family.metrics)
        beans = sum(len(reading.zeros) + len(reading.values) for reading in readings)
        kept, dropped = capped(readings, self._cap)
        return Answer(kept, beans, dropped)

    def _reading(self, metric: Metric) -> Reading:
        census = self._beans(metric, "exists")
        if metric.filter is None:
            zeros, values = self._each(metric, census)
        else:
            zeros, values = self._filtered(metric, census)
        flags = (FLAG_KNOWN_WRONG,) if metric.wrong_in(self._version) else ()
        return Reading(metric.name, metric.kind, zeros, values, flags)

    def _each(
        self, metric: Metric, census: Beans
    ) -> tuple[frozenset[Series], Mapping[Series, float | None]]:
        found = self._values(metric, census.items())
        zeros = frozenset(series for series, value in found.items() if value == 0)
        values = {series: value for series, value in found.items() if value != 0}
        return self._zeros.same(metric.name, zeros), values

    def _filtered(
        self, metric: Metric, census: Beans
    ) -> tuple[frozenset[Series], Mapping[Series, float | None]]:
        above = self._beans(metric, "above zero")
        quiet = self._derive(
            (metric.name, "quiet"), (census, above), lambda: self._quiet(metric, census, above)
        )
        if not above and not quiet.others:
            return quiet.zeros, quiet.idle
        values = dict(quiet.idle)
        if metric.filter == "binary":
            values.update(dict.fromkeys(above, 1.0))
        else:
            values.update(self._values(metric, above.items()))
        values.update(self._values(metric, quiet.others.items()))
        fallen = {series for series, value in values.items() if value == 0}
        if not fallen:
            return quiet.zeros, values
        kept = {series: value for series, value in values.items() if series not in fallen}
        return quiet.zeros | fallen, kept

    def _quiet(self, metric: Metric, census: Beans, above: Beans) -> _Quiet:
        # A bean that is neither above zero nor zero says NaN, or something that must not pass for
        # zero. It is looked at one by one, whenever the census or what is above zero has changed.
        rest = census.keys() - above.keys()
        zero = self._beans(metric, "zero")
        zeros = frozenset(rest & zero.keys())
        found = self._values(metric, ((series, census[series]) for series in rest - zeros))
        idle = {series: value for series, value in found.items() if value is None}
        others = {series: census[series] for series in found.keys() - idle.keys()}
        return _Quiet(self._zeros.same(metric.name, zeros), idle, others)

    def _beans(self, metric: Metric, which: str) -> Beans:
        found = tuple(self._query(pattern, metric, which) for pattern in metric.patterns)
        beans: Beans = self._derive(
            (metric.name, which), found, lambda: _series(metric, metric.patterns, found)
        )
        if not metric.led:
            return beans
        led = self._led(metric)
        kept: Beans = self._derive(
            (metric.name, f"{which} and led"),
            (beans, led),
            lambda: {
                series: name
                for series, name in beans.items()
                if (series.topic, series.partition) in led
            },
        )
        return kept

    def _led(self, metric: Metric) -> frozenset[Partition]:
        # Only a leader knows who is in sync: on followers the count is 0.
        names = self._query(_LED, metric, "led")
        led: frozenset[Partition] = self._derive(
            ("", "led"), (names,), lambda: frozenset(_partitions(metric, names))
        )
        return led

    def _query(self, pattern: str, metric: Metric, which: str) -> Any:
        attribute = {"exists": "", "led": "Value"}.get(which, metric.attribute_name)
        key = (pattern, attribute, "above zero" if which == "led" else which)
        if key in self._fresh:
            return self._names[key]
        expression = _expression(attribute, key[2]) if attribute else None
        names = self._connection.queryNames(
            java("javax.management.ObjectName")(pattern), expression
        )
        before = self._names.get(key)
        if before is None or not before.equals(names):
            self._names[key] = names
        self._fresh.add(key)
        return self._names[key]

    def _values(
        self, metric: Metric, beans: Iterable[tuple[Series, Any]]
    ) -> dict[Series, float | None]:
        values: dict[Series, float | None] = {}
        for series, name in beans:
            try:
                value = self._connection.getAttribute(name, metric.attribute_name)
            except _gone():
                continue
            except _failed() as error:
                reason = str(error).splitlines()[0]
                raise SourceError(
                    f"{self._where}: {name} {metric.attribute_name} failed in the broker: {reason}"
                ) from None
            values[series] = self._number(value, metric, name)
        return values

    def _number(self, value: object, metric: Metric, name: object) -> float | None:
        number = float(value) if isinstance(value, (int, float)) else None
        if number is None or math.isinf(number):
            raise SourceError(
                f"{self._where}: {name} {metric.attribute_name} is {value!s:.80}, not a number:"
                f" mend or remove {metric.name} in the catalogue"
            )
        return None if math.isnan(number) else number

    def _derive(
        self, key: tuple[str, str], inputs: tuple[Any, ...], make: Callable[[], Any]
    ) -> Any:
        before = self._derived.get(key)
        if before is not None and all(a is b for a, b in zip(before[0], inputs, strict=True)):
            return before[1]
        made = make()
        self._derived[key] = (inputs, made)
        return made


def _series(metric: Metric, patterns: Iterable[str], found: Iterable[Any]) -> Beans:
    beans: Beans = {}
    for pattern, names in zip(patterns, found, strict=True):
        for name in names:
            series = series_of(metric, pattern, str(name))
            if series is not None:
                beans.setdefault(series, name)
    return beans


def _partitions(metric: Metric, names: Any) -> Iterable[Partition]:
    for name in names:
        series = series_of(metric, _LED, str(name))
        if series is not None and series.topic is not None and series.partition is not None:
            yield Partition(series.topic, series.partition)


def _expression(attribute: str, which: str) -> Any:
    query = java("javax.management.Query")
    compare = query.gt if which == "above zero" else query.eq
    return compare(query.attr(attribute), query.value(jpype.JInt(0)))


def _gone() -> tuple[type[Exception], ...]:
    return (
        java("javax.management.InstanceNotFoundException"),
        java("javax.management.AttributeNotFoundException"),
    )


def _failed() -> tuple[type[Exception], ...]:
    return (
        java("javax.management.MBeanException"),
        java("javax.management.ReflectionException"),
        java("javax.management.JMRuntimeException"),
    )
