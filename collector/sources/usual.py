"""Values that most beans share: then only those that differ are named and read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from collector.sources.census import series_by_name
from collector.sources.mbean_server import Comparison

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.catalogue import Metric
    from collector.samples import Series
    from collector.sources.attributes import Attributes
    from collector.sources.census import Beans
    from collector.sources.mbean_server import MBeanServer

_FEWEST: Final = 20  # below that a query costs as much as to read them all


class Usual:
    """The value other than zero that most beans of a metric had last, such as one segment a log.

    Args:
        server: Who is asked.
        attributes: Reads the others.
    """

    def __init__(self, server: MBeanServer, attributes: Attributes) -> None:
        self._server = server
        self._attributes = attributes
        self._values: dict[str, float] = {}

    def learn(self, metric: Metric, values: Mapping[Series, float | None]) -> None:
        """Remember which value more than half of the beans have, if there is one."""
        self._values.pop(metric.name, None)
        if len(values) >= _FEWEST:
            ((value, count),) = Counter(values.values()).most_common(1)
            if value and 2 * count > len(values):
                self._values[metric.name] = value

    def read(self, metric: Metric, beans: Beans) -> dict[Series, float | None] | None:
        """All values, or None where no value is known to be usual."""
        usual = self._values.get(metric.name)
        if usual is None or len(beans) < _FEWEST:
            return None
        differs = Comparison("ne", usual)
        found = [self._server.names(p, metric.attribute_name, differs) for p in metric.patterns]
        others = {one: n for one, n in series_by_name(metric, found).items() if one in beans}
        values: dict[Series, float | None] = dict.fromkeys(beans, usual)
        read = self._attributes.read(metric, others)
        for series in others.keys() - read.keys():
            del values[series]
        return {**values, **read}
