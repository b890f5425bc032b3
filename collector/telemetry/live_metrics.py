"""Current problems of Kafka as Prometheus metrics (``jmxlake_kafka_*``).

A response is shown while it covers now. Unknown values are absent, never zero. Series of topics,
partitions, clients and groups exist while they are above zero, so the size of a response depends on
the number of problems. The number of series per metric is limited, because clients choose names:
the largest series are shown, and the rest is counted.
"""

import math
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from itertools import chain
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.catalogue import Family
from collector.model import Read, Reading, Scrape, Series
from collector.telemetry.agent_stats import NAMESPACE
from lakehouse.tables import MAX_GAP_INTERVALS, agent_names as exported

_OF_SOURCE: Final = Series("")[1:-1]  # all but metric and labels
Texts = Mapping[str, str]
Values = Mapping[Series, float]
Totals = Mapping[str, Values]  # by source
Made = dict[str, tuple[str, Metric]]
"""Exposed metric and its metric in the catalogue, by exposed name."""
_LOST: Final = {
    **{metric: metric for metric in exported.LOST},
    **{single: metric for metric, single in exported.LOST_IN_PARTITION.items()},
}
"""Metric in the catalogue of each exposed counter."""
_NUL: Final = "\u2400"  # Prometheus cannot read NUL


@dataclass(slots=True)
class _Track:
    """Last response of a family, and its end by the steady clock."""

    units: dict[str, str]
    lasts: float
    until: float = -math.inf
    readings: tuple[Reading, ...] = ()


class Live(Collector):
    """Last response of every family of every source. Any thread may call it.

    Args:
        lost: Returns the totals of ``LOST`` by source at every request (``add_up``).
        monotonic: Steady clock (seconds).

    Attributes:
        most: Maximum series per metric and source.
    """

    def __init__(
        self, lost: Callable[[], Totals], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.most, self._lost, self._monotonic = 0, lost, monotonic
        self._lock = threading.Lock()
        self._tracks: dict[Read, _Track] = {}
        self._clusters: dict[str, str] = {}

    def expect(self, families: Mapping[Read, tuple[Family, int]]) -> None:
        """Set the families to scrape, each with its interval (µs)."""
        with self._lock:
            before, self._tracks = self._tracks, {}
            for read, (family, interval_us) in families.items():
                track = self._tracks[read] = before.get(read, _Track({}, 0.0))
                track.units = {metric.name: metric.unit for metric in family.metrics}
                track.lasts = interval_us / 1e6 * MAX_GAP_INTERVALS

    def scraped(self, scrape: Scrape) -> None:
        """Record a scrape. A failed scrape ends the previous response."""
        readings = scrape.answer.readings if scrape.answer and scrape.outcome == "ok" else ()
        with self._lock:
            track = self._tracks.get(scrape.read)
            if track is None:
                return  # a reload removed it during the scrape
            track.readings = tuple(filter(_is_shown, readings))
            track.until = -math.inf if scrape.outcome != "ok" else self._monotonic() + track.lasts
            if scrape.identity is not None:
                self._clusters[scrape.source] = scrape.identity.cluster

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, computed at every request."""
        text = "1 if the last response of the family covers now."
        families = GaugeMetricFamily(exported.FAMILY_KNOWN, text)
        text = "1 if the last response of the metric covers now."
        metrics = GaugeMetricFamily(exported.METRIC_KNOWN, text)
        text = "Series above health.series, or with the name of another metric."
        unshown = GaugeMetricFamily(exported.UNSHOWN_SERIES, text)
        made: Made = {}
        lost, now = self._lost(), self._monotonic()
        with self._lock:
            for source in sorted({source for source, _ in self._tracks}):
                tracks = {name: track for (of, name), track in self._tracks.items() if of == source}
                known = {name: now <= track.until for name, track in tracks.items()}
                named = {
                    metric: known[name]
                    for name, track in tracks.items()
                    for metric in track.units
                    if metric in exported.SHOWN or metric in exported.LOST
                }
                cluster = self._clusters.get(source)
                base = {"source": source} | ({"cluster": cluster} if cluster else {})
                _flag(families, "family", known, base)
                _flag(metrics, "metric", named, base)
                if cluster is not None:
                    answers = [track.readings for name, track in tracks.items() if known[name]]
                    units = ChainMap(*(track.units for track in tracks.values()))
                    beyond = dict.fromkeys(named, 0)
                    for metric, values in _values(chain(*answers), lost.get(source, {})):
                        beyond[metric] = self._add(made, metric, units, values, base)
                    _flag(unshown, "metric", beyond, base)
        yield from (families, metrics, *(metric for _, metric in made.values()), unshown)

    def _add(self, made: Made, metric: str, units: Texts, values: Values, base: Texts) -> int:
        """Add the largest series of a metric and return the number of the rest."""
        name, is_lost = exported.live_name(metric), metric in _LOST
        kind = CounterMetricFamily if is_lost else GaugeMetricFamily
        empty = kind(name, f"{metric}, in {units.get(_LOST.get(metric, metric), '?')} (UCUM).")
        if name.startswith(f"{NAMESPACE}_") or made.setdefault(name, (metric, empty))[0] != metric:
            return len(values)
        sample = f"{name}_total" if is_lost else name
        shown, beyond = list(values.items()), max(0, len(values) - self.most)
        if beyond:
            shown = nlargest(self.most, shown, lambda item: (item[1], hash(item[0])))
        for series, value in shown:
            made[name][1].add_sample(sample, {**base, **_labels(series)}, value)
        return beyond


def _values(readings: Iterable[Reading], lost: Values) -> Iterator[tuple[str, Values]]:
    """Yield the series to show by metric, before the limit."""
    for reading in readings:
        if reading.metric in exported.SHOWN:
            yield reading.metric, {s: v for s, v in reading.values.items() if v and v > 0}
        else:  # idle is zero, as in the lake
            own = dict.fromkeys(reading.zeros, 0.0)
            yield reading.metric, own | {s: v or 0.0 for s, v in reading.values.items()}
    for metric in _LOST:
        found = {series: n for series, n in lost.items() if series.metric == metric}
        if found:
            yield metric, found


def _is_shown(reading: Reading) -> bool:
    """Return True for gauges of ``SHOWN`` and of the source itself."""
    if reading.kind != "gauge" or reading.metric in exported.SHOWN:
        return reading.kind == "gauge"
    first = next(chain(reading.values, reading.zeros), None)
    return first is not None and first[1:-1] == _OF_SOURCE


def _labels(series: Series) -> dict[str, str]:
    """Return the labels of a series. ``subject`` lists the labels of a client: one can be empty."""
    found = {
        name: _text(str(value))
        for name in ("topic", "partition", "user", "client_id", "group")
        if (value := getattr(series, name)) is not None
    }
    client = [name for name in ("user", "client_id") if name in found]
    more = {"subject": ",".join(client)} if client else {}
    if series.labels:
        more["labels"] = _text(",".join(f"{key}={value}" for key, value in series.labels))
    return found | more


def _text(name: str) -> str:
    return name.replace("\0", _NUL).encode("utf-8", "backslashreplace").decode()


def _flag(gauge: Metric, label: str, values: Mapping[str, float], base: Texts) -> None:
    for key, value in values.items():
        gauge.add_sample(gauge.name, {**base, label: key}, float(value))
