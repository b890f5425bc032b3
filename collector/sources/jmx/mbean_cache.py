"""Cache of MBean names, valid until the MBean server reports a registration or removal."""

import time
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any, Final

from collector.catalogue import Metric
from collector.model import Partition, Series
from collector.sources.base.beans import IN_SYNC, keys_of, series_of, text_of
from collector.sources.jmx.rmi_calls import ABOVE_ZERO, Kind, MBeanServer

Beans = dict[Series, Any]
"""Object names by series."""

_LED_KINDS: Final = frozenset(
    {("kafka.cluster", "Partition"), ("kafka.server", "FetcherLagMetrics")}
)
_LED_SECONDS: Final = 300.0
_SHARED_SECONDS: Final = 0.25


class MBeanCache:
    """The MBeans of one MBean server by metric, and the partitions that its broker leads.

    The led partitions change without a registration or removal of their MBeans. They are read again
    when the broker's own count changes, when the broker starts or stops following another broker
    (then an MBean of its fetchers is registered or removed), and every five minutes.

    Args:
        server: MBean server.
        clock: Steady clock, in seconds.
    """

    def __init__(self, server: MBeanServer, clock: Callable[[], float] = time.monotonic) -> None:
        self._server, self._clock = server, clock
        self._known: dict[str, tuple[Metric, Beans]] = {}
        self._of_led: dict[str, tuple[Beans, frozenset[Partition], Beans]] = {}
        self._led: frozenset[Partition] | None = None
        self._leaders: object = None
        self._led_until = 0.0
        self._asked_at = -_SHARED_SECONDS
        self._served: set[str] = set()

    def refresh(self, family: str) -> float:
        """Drop what has changed; return the age in seconds of the request that shows it.

        Families are read one after another, and the request costs as much as three values. One
        answer serves each family once, so that no family's scrapes overlap.
        """
        now = self._clock()
        if now < self._asked_at + _SHARED_SECONDS and family not in self._served:
            self._served.add(family)
            return now - self._asked_at
        kinds = self._server.changed()
        self._asked_at, self._served = now, {family}
        if kinds is None:
            self._known.clear()
            self.forget_led()
        elif kinds:
            self._known = {
                name: (metric, beans)
                for name, (metric, beans) in self._known.items()
                if not any(_is_of(pattern, kinds) for pattern in metric.patterns)
            }
            if kinds & _LED_KINDS:
                self.forget_led()
        return 0.0

    def forget_led(self) -> None:
        """Drop the led partitions, so that the next use reads them again."""
        self._led = None

    def beans(self, metric: Metric) -> Beans:
        """Return the MBeans of a metric, of all replicas; the same object while unchanged."""
        known = self._known.get(metric.name)
        if known is None or known[0] is not metric:
            found = [self._server.names(pattern) for pattern in metric.patterns]
            beans = {one: _kept(name) for one, name in series_by_name(metric, found).items()}
            known = self._known[metric.name] = (metric, beans)
        return known[1]

    def led_beans(self, metric: Metric, leaders: object) -> Beans:
        """Return the MBeans of led partitions.

        Args:
            metric: The metric.
            leaders: Number of partitions that the broker leads now, by its own count.
        """
        beans = self.beans(metric)
        if not beans:
            return beans
        led = self._led_now(leaders)
        known = self._of_led.get(metric.name)
        if known is None or known[0] is not beans or known[1] is not led:
            kept = {one: name for one, name in beans.items() if (one.topic, one.partition) in led}
            known = self._of_led[metric.name] = (beans, led, kept)
        return known[2]

    def _led_now(self, leaders: object) -> frozenset[Partition]:
        # The count was read first, so a later change shows in the next count.
        due = leaders is None or leaders != self._leaders or self._clock() >= self._led_until
        if self._led is None or due:
            names = self._server.names(IN_SYNC.patterns[0], IN_SYNC.attribute_name, ABOVE_ZERO)
            found = frozenset(map(_partition, names))
            self._led = self._led if found == self._led else found
            # A leader that moved between the two reads is in one of them only: read again.
            self._leaders = leaders if leaders == len(found) else None
            self._led_until = self._clock() + _LED_SECONDS
        return self._led


def series_by_name(metric: Metric, found: Iterable[Iterable[Any]]) -> Beans:
    """Return names by series for every pattern of the metric. The first name of a series counts."""
    beans: Beans = {}
    for pattern, names in zip(metric.patterns, found, strict=True):
        for name in names:
            series = series_of(metric, pattern, name)
            if series is not None:
                beans.setdefault(series, name)
    return beans


def _kept(name: Any) -> Any:
    """Return a name as text, with a third of the memory, or Java's name if it is not Unicode."""
    text = text_of(name)
    try:
        text.encode()
    except UnicodeEncodeError:
        return name
    return text


def _partition(name: Any) -> Partition:
    value = name.getKeyProperty
    return Partition(str(value("topic")), int(str(value("partition"))))


def _is_of(pattern: str, kinds: frozenset[Kind]) -> bool:
    domain, of_type = pattern.partition(":")[0], keys_of(pattern).get("type", "*")
    return any(fnmatchcase(kind[0], domain) and fnmatchcase(kind[1], of_type) for kind in kinds)
