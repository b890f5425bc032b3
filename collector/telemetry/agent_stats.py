"""The agent's own metrics (``jmxlake_agent_*``) and its health.

Threads update counters; other values are measured at each request. Ages are of a steady clock that
stops while the host sleeps, so that waking up is not a failure. Labels are families, sources and
outcomes, never topics, users, clients or secrets.
"""

import math
import resource
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Final, get_args

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.errors import SpoolError
from collector.model import Outcome, Read, Scrape
from collector.spool.recorder import Recorder
from collector.spool.spool import Spool
from collector.telemetry import memory
from lakehouse.tables import MAX_GAP_INTERVALS

NAMESPACE: Final = "jmxlake_agent"
STALE_SECONDS: Final = 30.0
"""A thread without a tick for this time counts as dead. Threads tick every ten seconds."""
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_THREADS: Final = ("main", "keeper")
_MOST_SILENT_DELIVERIES: Final = 3

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


@dataclass(slots=True)
class _Family:
    """State of a family for health. Instants are of the steady clock."""

    via: str
    max_gap: float = 0.0
    tried: bool = False
    answered: float = -math.inf
    error: str | None = None


class AgentStats:
    """Agent counters. Any thread may call any method.

    Args:
        monotonic: Steady clock (seconds).

    Attributes:
        registry: The counters, without metrics of libraries.
        commit_interval_seconds: Interval of deliveries.
        delivered: Delivered batches.
        factors: Factor of the configured interval, by family. 0: the family is disabled.
        window_rows: Rows of bronze/runs of the last closed window, by family.
        unfound: Errors of discovery, by entry of the configuration.
        lake_error: Why the last delivery failed. None if it succeeded.
        spool_error: Why the last write to the spool failed. None if it succeeded.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._families: dict[Read, _Family] = {}
        self._ticks: dict[str, float] = {}
        self._delivery_ended = 0.0
        self.commit_interval_seconds = math.inf
        self.delivered = 0
        self.factors: Mapping[str, int] = {}
        self.window_rows: Mapping[str, int] = {}
        self.unfound: dict[str, str] = {}
        self.lake_error: str | None = "no delivery yet; lake.commit_interval sets the first"
        self.spool_error: str | None = None
        self.registry = prometheus_client.CollectorRegistry()
        counter = partial(prometheus_client.Counter, namespace=NAMESPACE, registry=self.registry)
        gauge = partial(prometheus_client.Gauge, namespace=NAMESPACE, registry=self.registry)
        of = ("source", "family")
        self._seconds = prometheus_client.Histogram(
            "scrape_duration_seconds", "Duration of scrapes.", of,
            namespace=NAMESPACE, registry=self.registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._scrapes = counter("scrapes", "Scrapes by outcome.", (*of, "outcome"))
        self._missed = counter("missed_ticks", "Ticks during a running scrape.", of)
        self._dropped = counter("dropped_series", "Series above the limit of the family.", of)
        self._from_the_start = self._seconds, self._missed, self._dropped
        self._interval = gauge("interval_seconds", "Scrape interval of the family.", of)
        self._beans = gauge("beans", "MBeans in the last response.", of)
        self._commits = counter("commits", "Delivered batches.")
        self._commit_failures = counter("commit_failures", "Failed deliveries, which are retried.")
        self.clock_steps = counter("clock_steps", "Steps of the wall clock.")
        self.reloads = counter("reloads", "Configuration reloads.")
        self.reload_failures = counter("reload_failures", "Rejected configuration reloads.")
        self.unexpected_errors = counter("unexpected_errors", "Unexpected errors of the agent.")
        self.crashes = counter("crashes", "Crash reports of the JVM next to the spool.")
        self.seal_seconds = gauge("seal_seconds", "Duration of the last closing of windows.")
        self.delivery_seconds = gauge("delivery_seconds", "Duration of the last delivery.")

    def begin(self) -> None:
        """Start checking the ticks of the threads, after a start of any length."""
        self._ticks = dict.fromkeys(_THREADS, self._monotonic())

    def expect(self, families: Mapping[Read, tuple[str, int]]) -> None:
        """Set the families to scrape.

        Args:
            families: Transport and interval (µs), by source and family.
        """
        with self._lock:
            before, self._families = self._families, {}
            for read, (via, interval_us) in families.items():
                known = before.get(read)
                if known is None or known.via != via:
                    known = _Family(via)
                known.max_gap = interval_us / 1e6 * MAX_GAP_INTERVALS
                self._families[read] = known
                self._interval.labels(*read).set(interval_us / 1e6)
                for metric in self._from_the_start:
                    metric.labels(*read)
            for read in before.keys() - families.keys():
                for outcome in get_args(Outcome):
                    self._scrapes.remove(*read, outcome)
                for gone in (*self._from_the_start, self._interval, self._beans):
                    gone.remove(*read)

    def scraped(self, scrape: Scrape) -> None:
        """Count a scrape."""
        read = scrape.read
        with self._lock:
            family = self._families.get(read)
            if family is None:
                return  # a reload removed it during the scrape
            family.tried, family.error = True, scrape.error
            self._scrapes.labels(*read, scrape.outcome).inc()
            seconds = (scrape.answered_us - scrape.asked_us) / 1e6
            self._seconds.labels(*read).observe(seconds)
            if scrape.answer is not None:
                self._beans.labels(*read).set(scrape.answer.beans)
                self._dropped.labels(*read).inc(scrape.answer.dropped_series)
                family.answered = self._monotonic()

    def missed(self, read: Read) -> None:
        """Count a tick during a running scrape."""
        with self._lock:
            if read in self._families:
                self._missed.labels(*read).inc()

    def committed(self, batches: int) -> None:
        """Count the batches of a finished delivery."""
        self._commits.inc(batches)
        self.delivered += batches
        self._delivery_ended = self._monotonic()

    def commit_failed(self) -> None:
        """Count a failed delivery."""
        self._commit_failures.inc()
        self._delivery_ended = self._monotonic()

    def tick(self, thread: str) -> None:
        """Record that the main loop or the keeper is alive."""
        self._ticks[thread] = self._monotonic()

    def stalled_thread(self) -> str | None:
        """Return why the agent does not work. None if it works."""
        now = self._monotonic()
        for thread, ticked in list(self._ticks.items()):
            if now - ticked > STALE_SECONDS:
                return f"the {thread} thread has not ticked for {now - ticked:.0f} s"
        return None

    def tried_all(self) -> bool:
        """Return True if every family was scraped at least once."""
        with self._lock:
            return all(family.tried for family in self._families.values())

    def lake_problem(self) -> str | None:
        """Return why deliveries do not succeed. None if they do."""
        silent, interval = self._monotonic() - self._delivery_ended, self.commit_interval_seconds
        if self.lake_error is None and silent > _MOST_SILENT_DELIVERIES * interval:
            return f"no delivery has finished for {silent:.0f} s; check the network to the lake"
        return self.lake_error

    def silent_sources(self) -> dict[str, str]:
        """Return sources without a recent response and the reason, by source and transport.

        A response is recent while the last scrape of one of its families covers this instant.
        """
        now, found = self._monotonic(), dict(self.unfound)
        for at, families in sorted(self._by_transport().items()):
            if all(now > family.answered + family.max_gap for family in families):
                newest = max(family.answered for family in families)
                age = f"for {now - newest:.0f} s" if newest > -math.inf else "yet"
                why = next((f": {family.error}" for family in families if family.error), "")
                found[" ".join(filter(None, at))] = f"no answer {age}{why}"
        return found

    def answer_ages(self) -> dict[tuple[str, str], float]:
        """Return the age of the last response (seconds), by source and transport."""
        now = self._monotonic()
        return {
            at: now - newest
            for at, families in self._by_transport().items()
            if (newest := max(family.answered for family in families)) > -math.inf
        }

    def _by_transport(self) -> dict[tuple[str, str], list[_Family]]:
        found = defaultdict[tuple[str, str], list[_Family]](list)
        with self._lock:
            for (source, _), family in self._families.items():
                found[source, family.via].append(family)
        return found


@dataclass(frozen=True, eq=False)
class Measured(Collector):
    """Metrics that are measured at every request.

    Attributes:
        stats: Agent counters.
        spool: The spool.
        recorder: Recorder of the spool.
        started: Start of the agent (seconds since the epoch).
    """

    stats: AgentStats
    spool: Spool
    recorder: Recorder
    started: float

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        build = {"version": version("jmxlake"), "catalogue": self.recorder.catalogue}
        text = "Version of the agent and hash of its catalogue."
        yield InfoMetricFamily(f"{NAMESPACE}_build", text, build)
        yield from self._waiting()
        stats = self.stats
        yield _labelled("window_rows", "Rows of the last window.", stats.window_rows, "family")
        text = "Factor of the configured interval. 0: the family is disabled."
        yield _labelled("interval_factor", text, stats.factors, "family")
        ages = stats.answer_ages()
        yield _labelled("last_answer_seconds", "Age of the last response.", ages, "source", "via")
        usage = resource.getrusage(resource.RUSAGE_SELF)
        text = "Anonymous memory of the process: without the pages of library files."
        yield _gauge("anonymous_memory_bytes", text, memory.anonymous_bytes())
        text = "Resident memory of the process, with the pages of library files."
        yield _gauge("resident_memory_bytes", text, memory.resident_bytes())
        yield _counter("cpu_seconds", "Used processor time.", usage.ru_utime + usage.ru_stime)
        yield _gauge("start_time_seconds", "Start of the agent since the epoch.", self.started)
        if (java := memory.java()) is not None:
            yield _gauge("jvm_heap_bytes", "Used heap of the JVM in the process.", java[0])
            yield _counter("jvm_gc_seconds", "Time of garbage collection of the JVM.", java[1])

    def _waiting(self) -> Iterator[Metric]:
        try:
            depth, now = self.spool.depth(), time.time()
        except SpoolError:
            return  # absent means unknown; /readyz has the error
        yield _gauge("spool_batches", "Undelivered batches.", depth.batches)
        yield _gauge("spool_bytes", "Size of undelivered batches on disk.", depth.bytes)
        text = "Size above which the oldest batches are dropped."
        yield _gauge("spool_limit_bytes", text, self.spool.max_bytes)
        oldest = max(0.0, now - depth.oldest_us / 1e6) if depth.oldest_us else 0.0
        text = "Age of the oldest undelivered row in a batch. 0: none."
        yield _gauge("oldest_undelivered_seconds", text, oldest)
        if delivered_us := depth.oldest_us or self.recorder.sealed_us:
            text = "Age of the end of the last completely delivered window."
            lag = max(0.0, now - delivered_us / 1e6)
            yield _gauge("commit_lag_seconds", text, lag)
        dropped = self.recorder.dropped_batches
        yield _counter("dropped_batches", "Batches dropped from a full spool.", dropped)
        yield _gauge("refused_batches", "Kept batches that no lake accepts.", depth.refused)
        text = "Times the lake lost delivered batches."
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
