"""The agent's own metrics: what its threads count, what is measured when it is asked for, health.

Ages are of a steady clock that stands still while the host sleeps, so that waking up is no failure.
Prometheus sees them as ``jmxlake_agent_*``, of itself and not of Kafka. Labels are families,
sources and outcomes only: no topic, no user, no client, no secret.
"""

import math
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Final, get_args

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from collector.errors import SpoolError
from collector.model import Outcome, Scrape
from collector.spool.recorder import Recorder
from collector.spool.spool import Spool
from collector.telemetry import memory
from lakehouse.tables import MAX_GAP_INTERVALS

NAMESPACE: Final = "jmxlake_agent"
STALE_SECONDS: Final = 30.0
"""A thread that ticks every ten seconds at least and has not for this long is taken for dead."""
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_THREADS: Final = ("main", "keeper")
_MOST_SILENT_DELIVERIES: Final = 3

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


Read = tuple[str, str]
"""A source by its name in the lake, and a family that is read of it."""


@dataclass(slots=True)
class _Family:
    """The state of a family that health depends on; instants by the steady clock."""

    via: str
    max_gap: float = 0.0
    tried: bool = False
    answered: float = -math.inf


class AgentStats:
    """Counts; every method may be called from any thread.

    Args:
        monotonic: A steady clock, in seconds.

    Attributes:
        registry: The metrics that count; no library's are among them.
        commit_interval_seconds: How often a delivery should end.
        delivered: Batches that reached the lake.
        factors: By family, how many times as long as configured its interval is; 0: not read.
        window_rows: Rows of bronze/runs of the window that was sealed last, by family.
        unfound: Why a source is not read that the configuration leaves to be found, by how it is
            to be found.
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
        self.lake_reached = False
        self.spool_writable = True
        self.registry = prometheus_client.CollectorRegistry()
        counter = partial(prometheus_client.Counter, namespace=NAMESPACE, registry=self.registry)
        gauge = partial(prometheus_client.Gauge, namespace=NAMESPACE, registry=self.registry)
        of = ("source", "family")
        self._seconds = prometheus_client.Histogram(
            "scrape_duration_seconds", "Duration of attempts to read.", of,
            namespace=NAMESPACE, registry=self.registry, buckets=_BUCKETS,
        )  # fmt: skip
        self._scrapes = counter("scrapes", "Attempts to read, by how they ended.", (*of, "outcome"))
        self._missed = counter("missed_ticks", "Ticks while the attempt before was under way.", of)
        self._dropped = counter("dropped_series", "Series beyond the family's cap.", of)
        self._from_the_start = self._seconds, self._missed, self._dropped
        self._interval = gauge("interval_seconds", "Cadence of the family.", of)
        self._beans = gauge("beans", "Beans in the last answer.", of)
        self._commits = counter("commits", "Batches that reached the lake.")
        self._commit_failures = counter("commit_failures", "Deliveries that failed; tried again.")
        self.clock_steps = counter("clock_steps", "Times the wall clock was set.")
        self.reloads = counter("reloads", "Times the configuration was read again.")
        self.reload_failures = counter("reload_failures", "Of these, how many were refused.")
        self.unexpected_errors = counter("unexpected_errors", "Faults of the agent itself.")
        self.crashes = counter("crashes", "Crash reports of its JVM beside the spool.")
        self.seal_seconds = gauge("seal_seconds", "How long the last sealing took.")
        self.delivery_seconds = gauge("delivery_seconds", "How long the last delivery took.")

    def begin(self) -> None:
        """The threads begin to tick; what comes before may take its time."""
        self._ticks = dict.fromkeys(_THREADS, self._monotonic())

    def expect(self, families: Mapping[Read, tuple[str, int]]) -> None:
        """Set the families that are read from now on.

        Args:
            families: Via what and at which cadence in microseconds, by source and family.
        """
        with self._lock:
            before, self._families = self._families, {}
            for read, (via, interval_us) in families.items():
                known = before.get(read, _Family(via))
                if known.via != via:
                    known.via, known.answered = via, -math.inf
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
        """An attempt has ended."""
        read = scrape.source, scrape.family
        with self._lock:
            family = self._families.get(read)
            if family is None:
                return  # it was taken out of the configuration meanwhile
            family.tried = True
            self._scrapes.labels(*read, scrape.outcome).inc()
            seconds = (scrape.answered_us - scrape.asked_us) / 1e6
            self._seconds.labels(*read).observe(seconds)
            if scrape.answer is not None:
                self._beans.labels(*read).set(scrape.answer.beans)
                self._dropped.labels(*read).inc(scrape.answer.dropped_series)
                family.answered = self._monotonic()

    def missed(self, read: Read) -> None:
        """A tick came while the attempt before was still under way."""
        with self._lock:
            if read in self._families:
                self._missed.labels(*read).inc()

    def committed(self, batches: int) -> None:
        """A delivery has ended, and so many batches reached the lake."""
        self._commits.inc(batches)
        self.delivered += batches
        self._delivery_ended = self._monotonic()

    def commit_failed(self) -> None:
        """An attempt to deliver went wrong."""
        self._commit_failures.inc()
        self._delivery_ended = self._monotonic()

    def tick(self, thread: str) -> None:
        """The main loop or the keeper is alive."""
        self._ticks[thread] = self._monotonic()

    def stalled_thread(self) -> str | None:
        """Why the agent does not work, in one line; None where it does."""
        now = self._monotonic()
        for thread, ticked in list(self._ticks.items()):
            if now - ticked > STALE_SECONDS:
                return f"the {thread} thread has not ticked for {now - ticked:.0f} s"
        return None

    def tried_all(self) -> bool:
        """Whether every family was tried at least once."""
        with self._lock:
            return all(family.tried for family in self._families.values())

    def lake_problem(self) -> str | None:
        """Why the lake is not known to take what is delivered; None where it is."""
        if not self.lake_reached:
            return "the last delivery failed" if self._delivery_ended else "not reached yet"
        silent = self._monotonic() - self._delivery_ended
        if silent > _MOST_SILENT_DELIVERIES * self.commit_interval_seconds:
            return f"no delivery has ended for {silent:.0f} s"
        return None

    def silent_sources(self) -> dict[str, str]:
        """The sources, and via what, that have not answered lately, and since when.

        Lately: the last scrape of one of its families still covers this instant.
        """
        now, ages = self._monotonic(), self.answer_ages()
        since = {at: f"no answer for {age:.0f} s" for at, age in ages.items()}
        with self._lock:
            families = [((source, one.via), one) for (source, _), one in self._families.items()]
        seen = {at for at, one in families if now <= one.answered + one.max_gap}
        unseen = sorted({at for at, _ in families} - seen)
        texts = {" ".join(filter(None, at)): since.get(at, "no answer yet") for at in unseen}
        return self.unfound | texts

    def answer_ages(self) -> dict[tuple[str, str], float]:
        """How long ago the last answer came, in seconds, by source and via what."""
        now, newest = self._monotonic(), dict[tuple[str, str], float]()
        with self._lock:
            for (source, _), family in self._families.items():
                at = source, family.via
                newest[at] = max(family.answered, newest.get(at, -math.inf))
        return {at: now - instant for at, instant in newest.items() if instant > -math.inf}


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
        text = "Anonymous memory of the process: without the pages of library files."
        yield _gauge("anonymous_memory_bytes", text, memory.anonymous_bytes())
        text = "Resident memory of the process, with the pages of library files."
        yield _gauge("resident_memory_bytes", text, memory.resident_bytes())
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
