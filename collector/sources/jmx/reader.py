"""Reads a family from an MBean server, which itself selects the beans above zero.

The census knows the beans, so a scrape asks for values only. Where the broker keeps a count of its
own and it is zero, no bean is read; else one query names the beans above zero, and only those are
read. A set of series that did not change is returned as the same object. So a scrape costs little
while nothing is wrong. An attribute is read once a scrape, however many metrics need it.
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
from collector.sources.jmx.census import Beans, Census, series_by_name
from collector.sources.jmx.mbean_server import Comparison, MBeanServer

ABSENT: Final = object()
"""Stands for the value of an attribute, or of a bean, that is not there."""


class AttributeReader:
    """Reads attributes; one is asked once a scrape, however many want it.

    Args:
        server: Who is asked.
        where: What is read, for messages.
    """

    def __init__(self, server: MBeanServer, where: str) -> None:
        self._server, self._where = server, where
        self._known: dict[tuple[str, str], object] = {}

    def forget(self) -> None:
        """A new scrape begins."""
        self._known.clear()

    def read(self, metric: Metric, beans: Beans) -> Values:
        """One metric of these beans; None for NaN.

        Raises:
            SourceError: An attribute is no number, or failed inside the broker.
        """
        return self.read_all([metric], beans)[metric.name]

    def read_all(self, metrics: Sequence[Metric], beans: Beans) -> Mapping[str, Values]:
        """Several metrics of the same beans by name; the series are those of the first metric.

        Raises:
            SourceError: An attribute is no number, or failed inside the broker.
        """
        found: dict[str, dict[Series, float | None]] = {metric.name: {} for metric in metrics}
        for series, name in beans.items():
            values = self._several(name, list({metric.attribute_name: None for metric in metrics}))
            for metric in metrics:
                attribute = metric.attribute_name
                # What was left out is absent or failed: only asked alone does it say which.
                value = values[attribute] if attribute in values else self.value(name, attribute)
                if value is not ABSENT:
                    own = series._replace(metric=metric.name)
                    found[metric.name][own] = number_of(value, self._where, name, metric)
        return found

    def value(self, name: Any, attribute: str) -> object:
        """The value of one bean's attribute; ABSENT if it is not there.

        Raises:
            SourceError: It failed inside the broker.
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
                f"{self._where}: the answer for {text_of(name):.200} {attribute} holds {refused},"
                f" {NOT_ACCEPTED}; does the attribute fail in the broker?"
            ) from None


_VERIFY_SECONDS: Final = 300.0
_NAME: Final = re.compile(r"\bname=([A-Z][a-z]+)(\w*)")
_FEW: Final = 8  # a query evaluates every bean; to read as many as this one by one costs less


class _Quiet(NamedTuple):
    """Beans that are not above their least value.

    Attributes:
        zeros: Those that are zero.
        same: Those that keep a value for now: the least one, where it is not zero, or NaN.
        others: To be read each time: negative ones.
    """

    census: Beans
    above: Beans
    zeros: frozenset[Series]
    same: Values
    others: Beans


class MBeanReader:
    """Reads families over one connection; a new connection needs a new reader.

    Args:
        server: The MBean server.
        where: What is read, for messages.
        version: Kafka version of the other side, if known.
    """

    def __init__(self, server: MBeanServer, where: str, version: str | None) -> None:
        self._census = Census(server)
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
        listed_seconds = self._census.refresh(family.name)
        self._attributes.forget()
        self._above.begin(family)
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
        if metric.led and self._census.beans(metric):
            leaders = self._attributes.value(*LEADERS)
            return self._census.led_beans(metric, None if leaders is ABSENT else leaders)
        return self._census.beans(metric)

    def _filtered(self, metric: Metric, family: Family, *, verify: bool) -> Reading:
        census = self._beans(metric)
        above = self._above_zero(metric, family, census, verify=verify)
        if not above.keys() <= census.keys():
            self._census.forget_led()  # it leads what we did not know of
            census = {**self._beans(metric), **above}
        quiet = self._quiet_beans(metric, census, above, verify=verify)
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

    def _above_zero(self, metric: Metric, family: Family, census: Beans, *, verify: bool) -> Beans:
        if not census:
            return {}
        if metric.counted_by is not None and not verify:
            counting = family.metric(metric.counted_by)
            count = self._attributes.value(counting.patterns[0], counting.attribute_name)
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
        above = self._attributes.read(metric, known.above)
        return len(above) == count and all(above.values())

    def _quiet_beans(self, metric: Metric, census: Beans, above: Beans, *, verify: bool) -> _Quiet:
        # A bean that is neither above its least value nor at it says NaN, or something that must
        # not pass for that value. It is read whenever the census or what is above has changed; a
        # binary one only now and then, for the names of all zeros are the most expensive answer.
        known = None if verify else self._quiet.get(metric.name)
        if known is not None and known.census is census and known.above.keys() == above.keys():
            return known
        rest = census.keys() - above.keys()
        checked = verify or metric.filter != "binary"
        if not checked or not rest:
            quiet = _Quiet(census, above, frozenset(rest), {}, {})
        else:
            least = frozenset(rest & self._above.at_least(metric).keys())
            read = self._attributes.read(metric, {one: census[one] for one in rest - least})
            same: dict[Series, float | None] = {one: None for one in read if read[one] is None}
            others = {series: census[series] for series in read.keys() - same.keys()}
            if metric.least:
                same.update(dict.fromkeys(least, float(metric.least)))
                least = frozenset()
            quiet = _Quiet(census, above, least, same, others)
        self._quiet[metric.name] = quiet
        return quiet


def _by_bean(metrics: Sequence[Metric]) -> list[list[Metric]]:
    """Metrics that are attributes of the same beans, together."""
    groups: dict[object, list[Metric]] = {}
    for metric in metrics:
        key = (metric.patterns, tuple(metric.labels.items()), metric.led, metric.url_encoded)
        groups.setdefault(key, []).append(metric)
    return list(groups.values())


class AboveLeast:
    """Asks for the beans of a metric above its least value, which is mostly zero, or at it.

    Beans whose names begin with the same word (RemoteCopyLagBytes, RemoteCopyLagSegments, ...) are
    asked for together.

    Args:
        server: Who is asked.
    """

    def __init__(self, server: MBeanServer) -> None:
        self._ask = cache(server.names)
        self._shared: Counter[tuple[str, str]] = Counter()
        self._beans: dict[tuple[str, Comparison], tuple[Metric, list[Any], Beans]] = {}

    def begin(self, family: Family) -> None:
        """A new scrape of a family begins: what was asked before is not true any longer."""
        self._ask.cache_clear()
        self._shared = Counter(
            (_together(pattern), metric.attribute_name)
            for metric in family.metrics
            if metric.filter
            for pattern in metric.patterns
        )

    def beans(self, metric: Metric, census: Beans) -> Beans:
        """Those above their least value that the census has; of a binary led metric also others.

        Only a leader is ever under its min ISR, so it leads what the census does not know of.
        """
        above = self._compared(metric, Comparison("gt", metric.least))
        known_only = metric.filter != "binary" or not metric.led
        if known_only and not above.keys() <= census.keys():
            return {series: name for series, name in above.items() if series in census}
        return above

    def at_least(self, metric: Metric) -> Beans:
        """Those that have the least value, of all replicas; neither NaN nor absent is."""
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
