"""The agent's numbers as Prometheus metrics: ``jmxlake_agent_*``, of itself and not of Kafka.

Labels are families, sources and outcomes only: no topic, no user, no client, no secret.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from collector.errors import SpoolError
from collector.spool.recorder import Backlog
from collector.telemetry import memory
from collector.telemetry.self_metrics import NAMESPACE, AgentStats

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.core import Metric


@dataclass(frozen=True, eq=False)
class Measured(Collector):
    """The metrics that are measured at every request; what counts is in ``AgentStats``.

    Attributes:
        stats: What the agent counts.
        backlog: What waits, asked at every request.
        catalogue: Hash of the catalogue in force, asked at every request.
        started: When the agent started, in seconds since the epoch.
    """

    stats: AgentStats
    backlog: Callable[[], Backlog]
    catalogue: Callable[[], str]
    started: float

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        yield InfoMetricFamily(
            f"{NAMESPACE}_build",
            "Version of the agent, and hash of the catalogue in force.",
            {"version": version("jmxlake"), "catalogue": self.catalogue()},
        )
        yield from self._waiting()
        stats = self.stats
        yield _labelled("window_rows", "Rows of the last window.", "family", stats.window_rows)
        text = "How many times as long as configured an interval is; 0: not read."
        yield _labelled("interval_factor", text, "family", stats.factors)
        ages = GaugeMetricFamily(
            f"{NAMESPACE}_last_answer_seconds", "Age of the last answer.", labels=["source", "via"]
        )
        for at, age in stats.answer_ages().items():
            ages.add_metric(at, age)
        yield ages
        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield _gauge("resident_memory_bytes", "Memory of the process.", memory.resident_bytes())
        yield _counter("cpu_seconds", "Processor time used.", usage.ru_utime + usage.ru_stime)
        yield _gauge("start_time_seconds", "When it started, since the epoch.", self.started)
        if (java := memory.java()) is not None:
            yield _gauge("jvm_heap_bytes", "Heap in use of the JVM in it.", java.heap_bytes)
            yield _counter("jvm_gc_seconds", "Time it collected garbage.", java.gc_seconds)

    def _waiting(self) -> Iterator[Metric]:
        try:
            backlog, now = self.backlog(), time.time()
        except SpoolError:
            return  # absent means unknown; /readyz says what is wrong
        spool = backlog.spool
        yield _gauge("spool_batches", "Batches that are not in the lake yet.", spool.batches)
        yield _gauge("spool_bytes", "Size of those batches on disk.", spool.bytes)
        yield _gauge("spool_limit_bytes", "Size from which the oldest goes.", backlog.limit_bytes)
        oldest = max(0.0, now - spool.oldest_us / 1e6) if spool.oldest_us else 0.0
        text = "Age of the oldest that waits in a batch, if any."
        yield _gauge("oldest_undelivered_seconds", text, oldest)
        if backlog.delivered_us is not None:
            text = "Age of the end of the last window that is wholly in the lake."
            lag = max(0.0, now - backlog.delivered_us / 1e6)
            yield _gauge("commit_lag_seconds", text, lag)
        yield _counter("dropped_batches", "Batches dropped from a full spool.", backlog.dropped)
        yield _gauge("refused_batches", "Batches that no lake can take, kept.", spool.refused)
        text = "Times the lake had lost what it had taken."
        yield _counter("lake_lost_commits", text, backlog.lost_commits)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{NAMESPACE}_{name}", text, value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"{NAMESPACE}_{name}", text, value)


def _labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(f"{NAMESPACE}_{name}", text, labels=[label])
    for key, value in values.items():
        gauge.add_metric([key], value)
    return gauge
