"""The agent's own metrics that are measured when they are asked for: what waits, memory, time."""

import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.errors import SpoolError
from collector.spool.recorder import Recorder
from collector.spool.spool import Spool
from collector.telemetry import memory
from collector.telemetry.agent_stats import NAMESPACE, AgentStats


@dataclass(frozen=True, eq=False)
class Measured(Collector):
    """The metrics that are measured at every request; what is counted is in ``AgentStats``.

    Attributes:
        stats: What the agent counts.
        spool: What waits for the lake.
        recorder: Fills it.
        started: When the agent started, in seconds since the epoch.
    """

    stats: AgentStats
    spool: Spool
    recorder: Recorder
    started: float

    def collect(self) -> Iterator[Metric]:
        """All metrics."""
        build = {"version": version("jmxlake"), "catalogue": self.recorder.catalogue}
        text = "Version of the agent, and hash of the catalogue in force."
        yield InfoMetricFamily(f"{NAMESPACE}_build", text, build)
        yield from self._waiting()
        stats = self.stats
        yield _labelled("window_rows", "Rows of the last window.", stats.window_rows, "family")
        text = "How many times as long as configured an interval is; 0: not read."
        yield _labelled("interval_factor", text, stats.factors, "family")
        ages = stats.answer_ages()
        yield _labelled("last_answer_seconds", "Age of the last answer.", ages, "source", "via")
        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield _gauge("resident_memory_bytes", "Memory of the process.", memory.resident_bytes())
        yield _counter("cpu_seconds", "Processor time used.", usage.ru_utime + usage.ru_stime)
        yield _gauge("start_time_seconds", "When it started, since the epoch.", self.started)
        if (java := memory.java()) is not None:
            yield _gauge("jvm_heap_bytes", "Heap in use of the JVM in it.", java[0])
            yield _counter("jvm_gc_seconds", "Time it collected garbage.", java[1])

    def _waiting(self) -> Iterator[Metric]:
        try:
            depth, now = self.spool.depth(), time.time()
        except SpoolError:
            return  # absent means unknown; /readyz says what is wrong
        yield _gauge("spool_batches", "Batches that are not in the lake yet.", depth.batches)
        yield _gauge("spool_bytes", "Size of those batches on disk.", depth.bytes)
        yield _gauge("spool_limit_bytes", "Size from which the oldest goes.", self.spool.max_bytes)
        oldest = max(0.0, now - depth.oldest_us / 1e6) if depth.oldest_us else 0.0
        text = "Age of the oldest that waits in a batch, if any."
        yield _gauge("oldest_undelivered_seconds", text, oldest)
        if delivered_us := depth.oldest_us or self.recorder.sealed_us:
            text = "Age of the end of the last window that is wholly in the lake."
            lag = max(0.0, now - delivered_us / 1e6)
            yield _gauge("commit_lag_seconds", text, lag)
        dropped = self.recorder.dropped_batches
        yield _counter("dropped_batches", "Batches dropped from a full spool.", dropped)
        yield _gauge("refused_batches", "Batches that no lake can take, kept.", depth.refused)
        text = "Times the lake had lost what it had taken."
        yield _counter("lake_lost_commits", text, self.recorder.reported["lake_lost_commits"])


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{NAMESPACE}_{name}", text, value)


def _counter(name: str, text: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"{NAMESPACE}_{name}", text, value)


def _labelled(name: str, text: str, values: Mapping[Any, float], *labels: str) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(f"{NAMESPACE}_{name}", text, labels=labels)
    for key, value in values.items():
        gauge.add_metric(key if isinstance(key, tuple) else (key,), value)
    return gauge
