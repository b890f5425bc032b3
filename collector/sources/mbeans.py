"""Reads a family from an MBean server: what is above zero is asked of the server itself.

Which beans there are is known (see census), so a scrape asks only what they say. Where the broker
keeps a count of its own, zero means that nothing needs asking; else one query names the beans above
zero, and only those are read. A set of series that did not change is handed over as the same
object. So what a scrape costs follows from what is wrong.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.samples import Series
from collector.sources.above import AboveZero
from collector.sources.attributes import Attributes
from collector.sources.census import Beans, Census
from collector.sources.readings import Readings, answer_of
from collector.sources.values import Values, split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.catalogue import Family, Metric
    from collector.samples import Answer, Reading
    from collector.sources.mbean_server import MBeanServer

_LEADERS: Final = "kafka.server:type=ReplicaManager,name=LeaderCount"
_VERIFY_SECONDS: Final = 300.0
_FEW: Final = 8  # a query evaluates every bean; to read as many as this one by one costs less


class _Quiet(NamedTuple):
    """Beans that are not above zero: really zero, NaN, or to be looked at each time (negative)."""

    census: Beans
    above: Beans
    zeros: frozenset[Series]
    idle: Values
    others: Beans


class MBeanReader:
    """Reads families over one connection; a new connection needs a new reader.

    Args:
        server: The MBean server.
        where: What is read, for messages.
        version: Kafka version of the other side, if known.
        clock: Seconds that never jump.
    """

    def __init__(
        self,
        server: MBeanServer,
        where: str,
        version: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._census = Census(server, clock)
        self._attributes = Attributes(server, where)
        self._above = AboveZero(server)
        self._readings = Readings(version)
        self._quiet: dict[str, _Quiet] = {}
        self._hits: dict[str, int] = {}
        self._verify_at: dict[str, float] = {}

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: An attribute is not a number, or failed inside the broker.
        """
        self._census.refresh()
        self._attributes.forget()
        self._above.begin(family)
        found: dict[str, Reading] = {}
        verify = self._clock() >= self._verify_at.get(family.name, 0.0)
        for metrics in _by_bean(family.metrics):
            if self._reads_each(metrics):
                found.update(self._each(metrics))
            else:
                for metric in metrics:
                    found[metric.name] = self._filtered(metric, family, verify=verify)
        if verify:
            self._verify_at[family.name] = self._clock() + _VERIFY_SECONDS
        return answer_of(tuple(found[metric.name] for metric in family.metrics), family.cap)

    def _beans(self, metric: Metric) -> Beans:
        if metric.led and self._census.beans(metric):
            return self._census.led_beans(metric, self._attributes.single(_LEADERS, "Value"))
        return self._census.beans(metric)

    def _reads_each(self, metrics: Sequence[Metric]) -> bool:
        """Whether to read every bean costs fewer calls than to ask first which are above zero."""
        if any(metric.filter is None for metric in metrics):
            return True
        if any(metric.filter == "binary" for metric in metrics):
            return False
        queries = len(metrics)
        hits = sum(self._hits.get(metric.name, 0) for metric in metrics)
        return len(self._beans(metrics[0])) <= queries + hits

    def _each(self, metrics: Sequence[Metric]) -> dict[str, Reading]:
        told = self._attributes.read_all(metrics, self._beans(metrics[0]))
        readings = {}
        for metric in metrics:
            zeros, rest = split(told[metric.name])
            self._hits[metric.name] = len(rest) - sum(value is None for value in rest.values())
            readings[metric.name] = self._readings.reading(metric, zeros, rest)
        return readings

    def _filtered(self, metric: Metric, family: Family, *, verify: bool) -> Reading:
        census = self._beans(metric)
        above = self._above_zero(metric, family, census, verify=verify)
        if not above.keys() <= census.keys():
            self._census.forget_led()  # it leads what we did not know of
            census = {**self._beans(metric), **above}
        quiet = self._quiet_beans(metric, census, above, verify=verify)
        self._hits[metric.name] = len(above) + len(quiet.others)
        if not above and not quiet.others:
            return self._readings.reading(metric, quiet.zeros, quiet.idle)
        values = dict(quiet.idle)
        if metric.filter == "binary":
            values.update(dict.fromkeys(above, 1.0))
        else:
            values.update(self._attributes.read(metric, above))
        values.update(self._attributes.read(metric, quiet.others))
        fallen, rest = split(values)
        zeros = quiet.zeros | fallen if fallen else quiet.zeros
        return self._readings.reading(metric, zeros, rest)

    def _above_zero(self, metric: Metric, family: Family, census: Beans, *, verify: bool) -> Beans:
        if not census:
            return {}
        if metric.counted_by is not None and not verify:
            counting = family.metric(metric.counted_by)
            count = self._attributes.single(counting.patterns[0], counting.attribute_name)
            if count == 0:
                return {}
            if count == len(census):
                return census
            if self._unchanged_above(metric, census, count):
                return self._quiet[metric.name].above
        return self._above.beans(metric, census)

    def _unchanged_above(self, metric: Metric, census: Beans, count: object) -> bool:
        """Whether the few that were above zero are as many as the broker counts, and still are so.

        Then no other is. A topic with one replica is always at its min ISR; most brokers lead some.
        """
        known = self._quiet.get(metric.name)
        if known is None or known.census is not census or count != len(known.above):
            return False
        if len(known.above) > _FEW:
            return False
        told = self._attributes.read(metric, known.above)
        return len(told) == count and all(told.values())

    def _quiet_beans(self, metric: Metric, census: Beans, above: Beans, *, verify: bool) -> _Quiet:
        # A bean that is neither above zero nor zero says NaN, or something that must not pass for
        # zero. It is looked at one by one, whenever the census or what is above zero has changed;
        # a binary one only now and then, for the names of all zeros are the dearest of all answers.
        known = None if verify else self._quiet.get(metric.name)
        if known is not None and known.census is census and known.above.keys() == above.keys():
            return known
        rest = census.keys() - above.keys()
        checked = verify or metric.filter != "binary"
        if not checked or not rest:
            quiet = _Quiet(census, above, frozenset(rest), {}, {})
        else:
            zeros = frozenset(rest & self._above.zeros(metric).keys())
            found = self._attributes.read(metric, {one: census[one] for one in rest - zeros})
            idle = {series: value for series, value in found.items() if value is None}
            others = {series: census[series] for series in found.keys() - idle.keys()}
            quiet = _Quiet(census, above, zeros, idle, others)
        self._quiet[metric.name] = quiet
        return quiet


def _by_bean(metrics: Sequence[Metric]) -> list[list[Metric]]:
    """Metrics that are attributes of the same beans, together."""
    groups: dict[object, list[Metric]] = {}
    for metric in metrics:
        key = (metric.patterns, tuple(metric.labels.items()), metric.led, metric.url_encoded)
        groups.setdefault(key, []).append(metric)
    return list(groups.values())
