"""Which beans are above their least value, asked of the MBean server with few queries."""

import re
from collections import Counter
from functools import cache
from typing import Any, Final

from collector.catalogue import Family, Metric
from collector.sources.jmx.census import Beans, series_by_name
from collector.sources.jmx.mbean_server import Comparison, MBeanServer
from collector.sources.jmx.object_names import keys_of

_NAME: Final = re.compile(r"\bname=([A-Z][a-z]+)(\w*)")


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
