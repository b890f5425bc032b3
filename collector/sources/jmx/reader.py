"""Reader of families from an MBean server, which selects the MBeans above zero.

The MBean cache has the names, so a scrape reads values only. If the broker's own count is zero, no
MBean is read. Otherwise one query returns the MBeans above zero, and only those are read. So a
scrape of a healthy broker costs little. An attribute is read once per scrape, for all metrics that
need it. While the series do not change, the reader returns the same set object.
"""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from collector.catalogue import Family, Metric
from collector.errors import SourceDataError
from collector.model import Answer, Reading, Series
from collector.sources.base.beans import LEADERS, keys_of, text_of
from collector.sources.base.error_mapping import NOT_ACCEPTED, refused_class
from collector.sources.base.readings import Readings, Values, answer_of, number_of, split
from collector.sources.java.jvm import java
from collector.sources.jmx.mbean_cache import Beans, MBeanCache, series_by_name
from collector.sources.jmx.rmi_calls import Comparison, MBeanServer

ABSENT: Final = object()
"""Value of an attribute that does not exist, or of a missing MBean."""


class AttributeReader:
    """Reads attributes, each once per scrape.

    Args:
        server: MBean server.
        where: The source, for error texts.
    """

    def __init__(self, server: MBeanServer, where: str) -> None:
        self._server, self._where = server, where
        self._known: dict[tuple[str, str], object] = {}

    def forget(self) -> None:
        """Drop the values of the last scrape."""
        self._known.clear()

    def read(self, metric: Metric, beans: Beans) -> Values:
        """Return the values of one metric of these MBeans. None: NaN.

        Raises:
            SourceError: An attribute is not a number, or failed inside the broker.
        """
        return self.read_all([metric], beans)[metric.name]

    def read_all(self, metrics: Sequence[Metric], beans: Beans) -> Mapping[str, Values]:
        """Return the values of several metrics of the same MBeans, by metric.

        Args:
            metrics: Metrics.
            beans: MBeans by the first metric's series.

        Raises:
            SourceError: An attribute is not a number, or failed inside the broker.
        """
        found: dict[str, dict[Series, float | None]] = {metric.name: {} for metric in metrics}
        for series, name in beans.items():
            values = self._several(name, list({metric.attribute_name: None for metric in metrics}))
            for metric in metrics:
                attribute = metric.attribute_name
                # A value that is left out is absent or failed. A single request shows which.
                value = values[attribute] if attribute in values else self.value(name, attribute)
                if value is not ABSENT:
                    own = series._replace(metric=metric.name)
                    found[metric.name][own] = number_of(value, self._where, name, metric)
        return found

    def value(self, name: Any, attribute: str) -> object:
        """Return the value of one MBean's attribute, or ABSENT.

        Raises:
            SourceError: The attribute failed inside the broker.
        """
        key = (text_of(name), attribute)
        if key not in self._known:
            self._known[key] = self._ask(name, attribute)
        return self._known[key]

    def _several(self, name: Any, attributes: list[str]) -> Mapping[str, object]:
        if len(attributes) > 1:
            try:
                return self._server.values(name, attributes)
            except java("javax.management.InstanceNotFoundException"):
                return {}
            except java("java.rmi.UnmarshalException") as error:
                if refused_class(error) is None:
                    raise
        return {}

    def _ask(self, name: Any, attribute: str) -> object:
        try:
            return self._server.value(name, attribute)
        except (
            java("javax.management.InstanceNotFoundException"),
            java("javax.management.AttributeNotFoundException"),
        ):
            return ABSENT
        except (
            java("javax.management.MBeanException"),
            java("javax.management.ReflectionException"),
            java("javax.management.JMRuntimeException"),
        ) as error:
            reason = text_of(error).splitlines()[0]
            raise SourceDataError(
                f"{self._where}: {text_of(name):.200} {attribute} failed in the broker:"
                f" {reason:.200}"
            ) from None
        except java("java.rmi.UnmarshalException") as error:
            refused = refused_class(error)
            if refused is None:
                raise
            raise SourceDataError(
                f"{self._where}: the answer for {text_of(name):.200} {attribute} contains"
                f" {refused}, {NOT_ACCEPTED}; check whether the attribute fails in the broker"
            ) from None


_VERIFY_SECONDS: Final = 300.0
_NAME: Final = re.compile(r"\bname=([A-Z][a-z]+)(\w*)")
_FEW: Final = 8  # a query evaluates every MBean; so many single reads cost less


class _Quiet(NamedTuple):
    """MBeans that are not above their minimum.

    Attributes:
        cached: All MBeans of the metric, of the MBean cache.
        above: MBeans above their minimum.
        zeros: Series that are zero.
        same: Values that do not change for now: the minimum, if it is not zero, or NaN.
        others: MBeans that are read at each scrape, because their values are negative.
    """

    cached: Beans
    above: Beans
    zeros: frozenset[Series]
    same: Values
    others: Beans


class MBeanReader:
    """Reads families over one connection. A new connection needs a new reader.

    Args:
        server: MBean server.
        where: The source, for error texts.
        version: Kafka version of the JVM, if known.
    """

    def __init__(self, server: MBeanServer, where: str, version: str | None) -> None:
        self._cache = MBeanCache(server)
        self._attributes = AttributeReader(server, where)
        self._above = AboveLeast(server)
        self._readings = Readings(version)
        self._quiet: dict[str, _Quiet] = {}
        self._verify_at: dict[str, float] = {}

    def read(self, family: Family) -> Answer:
        """Read one family.

        Raises:
            SourceError: An attribute is not a number, or failed inside the broker.
        """
        listed_seconds = self._cache.refresh(family.name)
        self._attributes.forget()
        self._above.start(family)
        found: dict[str, Reading] = {}
        verify = time.monotonic() >= self._verify_at.get(family.name, 0.0)
        for metrics in _by_bean(family.metrics):
            if any(metric.filter is None for metric in metrics):
                values = self._attributes.read_all(metrics, self._beans(metrics[0]))
                for metric in metrics:
                    found[metric.name] = self._readings.reading(metric, *split(values[metric.name]))
            else:
                for metric in metrics:
                    found[metric.name] = self._filtered(metric, family, verify=verify)
        if verify:
            self._verify_at[family.name] = time.monotonic() + _VERIFY_SECONDS
        readings = tuple(found[metric.name] for metric in family.metrics)
        return answer_of(readings, family.cap, listed_us=round(listed_seconds * 1e6))

    def _beans(self, metric: Metric) -> Beans:
        if metric.led and self._cache.beans(metric):
            leaders = self._attributes.value(*LEADERS)
            return self._cache.led_beans(metric, None if leaders is ABSENT else leaders)
        return self._cache.beans(metric)

    def _filtered(self, metric: Metric, family: Family, *, verify: bool) -> Reading:
        cached = self._beans(metric)
        above = self._above_zero(metric, family, cached, verify=verify)
        if not above.keys() <= cached.keys():
            self._cache.forget_led()  # the broker has become leader of a partition
            cached = {**self._beans(metric), **above}
        quiet = self._quiet_beans(metric, cached, above, verify=verify)
        if not above and not quiet.others:
            return self._readings.reading(metric, quiet.zeros, quiet.same)
        values = dict(quiet.same)
        if metric.filter == "binary":
            values.update(dict.fromkeys(above, 1.0))
        else:
            values.update(self._attributes.read(metric, above))
        values.update(self._attributes.read(metric, quiet.others))
        fallen, rest = split(values)
        zeros = quiet.zeros | fallen if fallen else quiet.zeros
        return self._readings.reading(metric, zeros, rest)

    def _above_zero(self, metric: Metric, family: Family, cached: Beans, *, verify: bool) -> Beans:
        if not cached:
            return {}
        if metric.counted_by is not None and not verify:
            counting = family.metric(metric.counted_by)
            count = self._attributes.value(counting.patterns[0], counting.attribute_name)
            if count == 0:
                return {}
            if count == len(cached):
                return cached
            if self._unchanged_above(metric, cached, count):
                return self._quiet[metric.name].above
        return self._above.beans(metric, cached)

    def _unchanged_above(self, metric: Metric, cached: Beans, count: object) -> bool:
        """Return True if the few MBeans above zero are still above, and match the broker's count.

        Then no other MBean is above zero. This is common: a topic with one replica is always at its
        min ISR, and most brokers lead such a topic.
        """
        known = self._quiet.get(metric.name)
        if known is None or known.cached is not cached or count != len(known.above):
            return False
        if len(known.above) > _FEW:
            return False
        above = self._attributes.read(metric, known.above)
        return len(above) == count and all(above.values())

    def _quiet_beans(self, metric: Metric, cached: Beans, above: Beans, *, verify: bool) -> _Quiet:
        # An MBean that is neither above its minimum nor at it has NaN or another value. It is read
        # whenever the cache or the set above has changed. Binary metrics are read only every few
        # minutes, because the names of all zeros are the most expensive response.
        known = None if verify else self._quiet.get(metric.name)
        if known is not None and known.cached is cached and known.above.keys() == above.keys():
            return known
        rest = cached.keys() - above.keys()
        checked = verify or metric.filter != "binary"
        if not checked or not rest:
            quiet = _Quiet(cached, above, frozenset(rest), {}, {})
        else:
            least = frozenset(rest & self._above.at_least(metric).keys())
            read = self._attributes.read(metric, {one: cached[one] for one in rest - least})
            same: dict[Series, float | None] = {one: None for one in read if read[one] is None}
            others = {series: cached[series] for series in read.keys() - same.keys()}
            if metric.least:
                same.update(dict.fromkeys(least, float(metric.least)))
                least = frozenset()
            quiet = _Quiet(cached, above, least, same, others)
        self._quiet[metric.name] = quiet
        return quiet


def _by_bean(metrics: Sequence[Metric]) -> list[list[Metric]]:
    """Group metrics that are attributes of the same MBeans."""
    groups: dict[object, list[Metric]] = {}
    for metric in metrics:
        key = (metric.patterns, tuple(metric.labels.items()), metric.led, metric.url_encoded)
        groups.setdefault(key, []).append(metric)
    return list(groups.values())


class AboveLeast:
    """Queries the MBeans of a metric that are above its minimum (mostly zero), or at it.

    One query covers MBeans whose names start with the same word (RemoteCopyLagBytes,
    RemoteCopyLagSegments, ...).

    Args:
        server: MBean server.
    """

    def __init__(self, server: MBeanServer) -> None:
        self._ask = cache(server.names)
        self._shared: Counter[tuple[str, str]] = Counter()
        self._beans: dict[tuple[str, Comparison], tuple[Metric, list[Any], Beans]] = {}

    def start(self, family: Family) -> None:
        """Start a scrape of a family: drop the answers of the last scrape."""
        self._ask.cache_clear()
        self._shared = Counter(
            (_together(pattern), metric.attribute_name)
            for metric in family.metrics
            if metric.filter
            for pattern in metric.patterns
        )

    def beans(self, metric: Metric, cached: Beans) -> Beans:
        """Return the cached MBeans above their minimum.

        A binary metric of led partitions also returns MBeans that are not cached. Only a leader can
        be under its min ISR, so the broker has become leader of their partitions.
        """
        above = self._compared(metric, Comparison("gt", metric.least))
        known_only = metric.filter != "binary" or not metric.led
        if known_only and not above.keys() <= cached.keys():
            return {series: name for series, name in above.items() if series in cached}
        return above

    def at_least(self, metric: Metric) -> Beans:
        """Return the MBeans with the minimum, of all replicas. NaN and absent do not count."""
        return self._compared(metric, Comparison("eq", metric.least))

    def _compared(self, metric: Metric, comparison: Comparison) -> Beans:
        found = [self._of_metric(pattern, metric, comparison) for pattern in metric.patterns]
        known = self._beans.get((metric.name, comparison))
        if known is not None and known[0] is metric and known[1] == found:
            return known[2]
        made = series_by_name(metric, found)
        self._beans[metric.name, comparison] = (metric, found, made)
        return made

    def _of_metric(self, pattern: str, metric: Metric, comparison: Comparison) -> Any:
        together = _together(pattern)
        if self._shared[together, metric.attribute_name] < 2:
            return self._ask(pattern, metric.attribute_name, comparison)
        name = keys_of(pattern)["name"]
        names = self._ask(together, metric.attribute_name, comparison)
        return [one for one in names if str(one.getKeyProperty("name")) == name]


@cache
def _together(pattern: str) -> str:
    return _NAME.sub(r"name=\1*", pattern) if "*" in pattern else pattern
