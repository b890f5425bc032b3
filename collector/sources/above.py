"""Which beans are above zero, asked of the MBean server with as few queries as can be."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from collector.sources.census import Beans, series_by_name
from collector.sources.mbean_server import ABOVE_ZERO, ZERO

if TYPE_CHECKING:
    from collector.catalogue import Family, Metric
    from collector.sources.mbean_server import Comparison, MBeanServer

_NAME: Final = re.compile(r"\bname=([A-Z][a-z]+)(\w*)")


class AboveZero:
    """Asks for the beans of a metric that are above zero, or that are zero.

    Beans whose names begin with the same word (RemoteCopyLagBytes, RemoteCopyLagSegments, ...) are
    asked for together. Of a binary metric the rarer value is asked for: names cost more than zeros.

    Args:
        server: Who is asked.
    """

    def __init__(self, server: MBeanServer) -> None:
        self._server = server
        self._together: tuple[Family | None, Counter[tuple[str, str]]] = (None, Counter())
        self._asked: dict[tuple[str, str, Comparison], Any] = {}
        self._names: dict[tuple[str, str, Comparison], Any] = {}
        self._parts: dict[tuple[str, str, Comparison], list[Any]] = {}
        self._beans: dict[tuple[str, Comparison], tuple[Metric, list[Any], Beans]] = {}
        self._mostly: dict[str, bool] = {}

    def begin(self, family: Family) -> None:
        """A new scrape of a family begins: what was asked before is not true any longer."""
        self._asked.clear()
        if self._together[0] is not family:
            shared = Counter(
                (_together(pattern), metric.attribute_name)
                for metric in family.metrics
                if metric.filter
                for pattern in metric.patterns
            )
            self._together = (family, shared)

    def beans(self, metric: Metric, census: Beans) -> Beans:
        """Those above zero, of the census; of a binary metric of led partitions also others.

        Only a leader is ever under its min ISR, so it leads what the census does not know of.
        """
        if metric.filter == "binary" and self._mostly.get(metric.name):
            zeros = self.zeros(metric)
            above = {series: name for series, name in census.items() if series not in zeros}
        else:
            above = self._compared(metric, ABOVE_ZERO)
            known_only = metric.filter != "binary" or not metric.led
            if known_only and not above.keys() <= census.keys():
                above = {series: name for series, name in above.items() if series in census}
        self._mostly[metric.name] = 2 * len(above) > len(census)
        return above

    def zeros(self, metric: Metric) -> Beans:
        """Those that are zero, of all replicas; neither NaN nor absent is."""
        return self._compared(metric, ZERO)

    def _compared(self, metric: Metric, comparison: Comparison) -> Beans:
        found = [self._of_metric(pattern, metric, comparison) for pattern in metric.patterns]
        known = self._beans.get((metric.name, comparison))
        if known is not None and known[0] is metric and _same(known[1], found):
            return known[2]
        made = series_by_name(metric, found)
        self._beans[metric.name, comparison] = (metric, found, made)
        return made

    def _of_metric(self, pattern: str, metric: Metric, comparison: Comparison) -> Any:
        together = _together(pattern)
        attribute = metric.attribute_name
        if self._together[1][together, attribute] < 2:
            return self._ask(pattern, attribute, comparison)
        names = self._ask(together, attribute, comparison)
        if not names:
            return names
        wanted = _NAME.search(pattern)
        name = wanted[1] + wanted[2] if wanted else None
        key = (pattern, attribute, comparison)
        kept = [one for one in names if str(one.getKeyProperty("name")) == name]
        if self._parts.get(key) != kept:
            self._parts[key] = kept
        return self._parts[key]

    def _ask(self, pattern: str, attribute: str, comparison: Comparison) -> Any:
        key = (pattern, attribute, comparison)
        if key not in self._asked:
            names = self._server.names(pattern, attribute, comparison)
            before = self._names.get(key)
            if before is None or not before.equals(names):
                self._names[key] = names
            self._asked[key] = self._names[key]
        return self._asked[key]


def _together(pattern: str) -> str:
    return _NAME.sub(r"name=\1*", pattern) if "*" in pattern else pattern


def _same(known: list[Any], found: list[Any]) -> bool:
    return all(before is now for before, now in zip(known, found, strict=True))
