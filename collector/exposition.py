"""The agent's numbers as Prometheus metrics: ``jmxlake_agent_*``, of itself and not of Kafka.

Labels are families, sources and outcomes only: no topic, no user, no client, no secret.
"""

from __future__ import annotations

import resource
import time
from importlib.metadata import version
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.registry import Collector

from collector import footprint
from collector.errors import SpoolError
from collector.vitals import BUCKETS, FamilyVitals, Vitals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prometheus_client.core import Metric

    from collector.backlog import Backlog

_PREFIX: Final = "jmxlake_agent_"


class AgentCollector(Collector):
    """Makes the metrics anew at every request.

    Args:
        vitals: What the agent counts.
        backlog: What waits, asked at every request.
        catalogue: Hash of the catalogue in force, asked at every request.
        started: When the agent started, in seconds since the epoch.
    """

    def __init__(
        self,
        vitals: Vitals,
        backlog: Callable[[], Backlog],
        catalogue: Callable[[], str],
        started: float,
    ) -> None:
        self._vitals, self._backlog, self._catalogue = vitals, backlog, catalogue
        self._started = started

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        yield InfoMetricFamily(
            f"{_PREFIX}build",
            "Version of the agent, and hash of the catalogue in force.",
            {"version": version("jmxlake"), "catalogue": self._catalogue()},
        )
        yield from _families(self._vitals.families())
        yield from self._delivery()
        yield from self._counts()
        yield from _process(self._started)

    def _delivery(self) -> Iterator[Metric]:
        try:
            backlog, now = self._backlog(), time.time()
        except SpoolError:
            return  # unknown is told by absence; /readyz says what is wrong
        yield _gauge("spool_batches", "Batches that are not in the lake yet.", backlog.batches)
        yield _gauge("spool_bytes", "Size of those batches on disk.", backlog.bytes)
        yield _gauge("spool_limit_bytes", "Size from which the oldest goes.", backlog.limit_bytes)
        oldest = max(0.0, now - backlog.oldest_us / 1e6) if backlog.oldest_us else 0.0
        yield _gauge(
            "oldest_undelivered_seconds", "Age of the oldest that waits in a batch, if any.", oldest
        )
        if backlog.delivered_us is not None:
            lag = max(0.0, now - backlog.delivered_us / 1e6)
            yield _gauge(
                "commit_lag_seconds",
                "Age of the end of the last window that is wholly in the lake; in good times up to"
                " a window, its sealing and the commit interval.",
                lag,
            )
        yield _counter("dropped_batches", "Batches dropped from a full spool.", backlog.dropped)
        yield _gauge("refused_batches", "Batches that no lake can take, kept.", backlog.refused)
        yield _counter(
            "lake_lost_commits", "Times the lake had lost what it had taken.", backlog.lost_commits
        )

    def _counts(self) -> Iterator[Metric]:
        vitals = self._vitals
        for name, text, count in (
            ("commits", "Batches that reached the lake.", vitals.commits),
            ("commit_failures", "Deliveries that failed; tried again.", vitals.commit_failures),
            ("clock_steps", "Times the wall clock was set.", vitals.clock_steps),
            ("reloads", "Times the configuration was read anew.", vitals.reloads),
            ("reload_failures", "Of these, how many were refused.", vitals.reload_failures),
            ("unexpected_errors", "Faults of the agent itself.", vitals.unexpected_errors),
            ("crashes", "Crash reports of its JVM beside the spool.", vitals.crashes),
        ):
            yield _counter(name, text, count)
        yield _gauge("seal_seconds", "How long the last sealing took.", vitals.seal_seconds)
        yield _gauge(
            "delivery_seconds", "How long the last delivery took.", vitals.delivery_seconds
        )
        yield _labelled("window_rows", "Rows of the last window.", "family", vitals.window_rows)
        text = "How many times as long as configured an interval is; 0: not read."
        yield _labelled("interval_factor", text, "family", vitals.factors)
        yield _labelled("last_answer_seconds", "Age of the last answer.", "source", vitals.silent())


def registry(collector: Collector) -> CollectorRegistry:
    """A registry of our own: without what libraries put into the global one."""
    made = CollectorRegistry()
    made.register(collector)
    return made


def _families(families: dict[str, FamilyVitals]) -> Iterator[Metric]:
    seconds = HistogramMetricFamily(
        f"{_PREFIX}scrape_duration_seconds", "Duration of attempts to read.", labels=["family"]
    )
    scrapes = CounterMetricFamily(
        f"{_PREFIX}scrapes", "Attempts to read, by how they ended.", labels=["family", "outcome"]
    )
    missed = CounterMetricFamily(
        f"{_PREFIX}missed_ticks", "Ticks while the attempt before was under way.", labels=["family"]
    )
    dropped = CounterMetricFamily(
        f"{_PREFIX}dropped_series", "Series beyond the family's cap.", labels=["family"]
    )
    for name, family in families.items():
        seconds.add_metric([name], _cumulative(family.buckets), family.seconds)
        for outcome, count in sorted(family.outcomes.items()):
            scrapes.add_metric([name, outcome], count)
        missed.add_metric([name], family.missed)
        dropped.add_metric([name], family.dropped_series)
    yield from (seconds, scrapes, missed, dropped)
    spans = {name: family.interval_seconds for name, family in families.items()}
    yield _labelled("interval_seconds", "Cadence of the family.", "family", spans)
    beans = {name: one.beans for name, one in families.items() if one.beans is not None}
    yield _labelled("beans", "Beans in the last answer.", "family", beans)


def _cumulative(buckets: list[int]) -> list[tuple[str, float]]:
    bounds = (*map(str, BUCKETS), "+Inf")
    return list(zip(bounds, map(float, accumulate(buckets)), strict=True))


def _process(started: float) -> Iterator[Metric]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield _gauge("resident_memory_bytes", "Memory of the process.", footprint.resident_bytes())
    yield _counter("cpu_seconds", "Processor time used.", usage.ru_utime + usage.ru_stime)
    yield _gauge("start_time_seconds", "When the agent started, since the epoch.", started)
    java = footprint.java()
    if java is not None:
        yield _gauge("jvm_heap_bytes", "Heap in use of the JVM in the process.", java.heap_bytes)
        yield _counter("jvm_gc_seconds", "Time it collected garbage.", java.gc_seconds)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_PREFIX}{name}", text, value)


def _labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(f"{_PREFIX}{name}", text, labels=[label])
    for key, value in values.items():
        gauge.add_metric([key], value)
    return gauge


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"{_PREFIX}{name}", text, value)
