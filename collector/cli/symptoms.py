"""Current symptoms of a broker, worst first.

Times are monotonic seconds. A family without a recent scrape is unknown, never healthy.
"""

import math
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from collector.agent.plan import Task
from collector.catalogue import Family
from collector.encoding.expired_offsets import HIGH, LOW, NonConsumed, add_up, increases
from collector.model import Identity, Scrape, Series
from lakehouse.tables import MAX_GAP_INTERVALS

SYMPTOMS: Final = {
    "kafka.partition.leaderless": ("no leader", ""),
    "kafka.controller.offline_partitions": ("no leader", "in the cluster"),
    "kafka.partition.under_min_isr": ("under min ISR", ""),
    HIGH: ("lost unread", ""),
    "kafka.controller.fenced_brokers": ("fenced", "in the cluster"),
    "kafka.cluster.node.fenced": ("fenced", ""),
    "kafka.client.produce.throttle_time": ("throttled", "produce"),
    "kafka.client.fetch.throttle_time": ("throttled", "fetch"),
    "kafka.client.request.throttle_time": ("throttled", "request"),
    "kafka.client.controller_mutation.throttle_time": ("throttled", "topic changes"),
    "kafka.producer.produce_throttle_time.avg": ("throttled", "produce"),
    "kafka.consumer.fetch_throttle_time.avg": ("throttled", "fetch"),
    "kafka.topic.remote_copy_lag.bytes": ("lagging", "copy to tier"),
    "kafka.topic.remote_delete_lag.segments": ("lagging", "delete in tier"),
    "kafka.partition.upload_lag.bytes": ("lagging", "copy to tier"),
    "kafka.partition.delete_lag.bytes": ("lagging", "delete in tier"),
    "kafka.partition.delete_failed.segments": ("lagging", "failed deletions"),
    "kafka.partition.upload_tier_lag": ("lagging", "copy to tier"),
    "kafka.partition.delete_tier_lag": ("lagging", "delete in tier"),
}
"""Kind and variant of the symptom of each metric that is bad above zero, worst first."""
KINDS: Final = tuple(dict.fromkeys(kind for kind, _ in SYMPTOMS.values()))
_FOR_ALL: Final = ("no leader", "fenced")
"""Kinds that two brokers report for all brokers, through the Admin API."""
_REPORTERS: Final = "kafka.cluster.node.fenced"
"""Metric that only the two reporting brokers have series of."""
NOT_YET: Final = "not scraped yet"


class Symptom(NamedTuple):
    """A current problem of one series.

    Attributes:
        kind: One of ``KINDS``.
        word: Variant of the kind. Can be empty.
        series: The series.
        value: The value, or its upper bound, in the unit of the metric.
        unit: UCUM unit of the value.
        least: Lower bound of the value. None if the value is exact.
        since: Time of the first scrape that showed it.
        at_first_look: True if the first scrape showed it, so that it started before ``since``.
    """

    kind: str
    word: str
    series: Series
    value: float
    unit: str
    since: float
    at_first_look: bool = False
    least: float | None = None


class Unknown(NamedTuple):
    """A family without a recent scrape, the reason in one line, and its start."""

    family: str
    why: str
    since: float


class State(NamedTuple):
    """The state of all families at one time.

    Attributes:
        identity: Identity of the source. None before the first response.
        counts: Number of symptoms by kind; ``?``: unknown, ``-``: other brokers report it.
        symptoms: Symptoms, worst first.
        unknown: Families without a recent scrape.
        blind: True if no family has a recent scrape.
    """

    identity: Identity | None
    counts: Mapping[str, str]
    symptoms: Sequence[Symptom]
    unknown: Sequence[Unknown]
    blind: bool


@dataclass(slots=True)
class _Track:
    """The state of one family.

    ``until`` is the time at which the last response expires; ``why`` is a reason if it has.
    """

    family: Family
    max_gap: float
    seen: float
    until: float = -math.inf
    why: str = NOT_YET
    symptoms: dict[Series, Symptom] = field(default_factory=dict)
    reports_for_all: bool = False
    offsets: NonConsumed = field(default_factory=NonConsumed)
    lost: dict[Series, float] = field(default_factory=dict)
    """Records that groups lost since the first response."""


class Board:
    """The symptoms of all families, with their start. It is thread-safe.

    Args:
        tasks: All tasks.
        now: The start time.

    Attributes:
        tasks: Tasks of families with symptoms.
    """

    def __init__(self, tasks: Sequence[Task], now: float) -> None:
        self.tasks = [task for task in tasks if kinds_of(task.family)]
        self._lock = threading.Lock()
        self._identity: Identity | None = None
        self._tracks = {
            task.read: _Track(task.family, task.interval_us / 1e6 * MAX_GAP_INTERVALS, now)
            for task in self.tasks
        }

    def read(self, task: Task) -> None:
        """Scrape a family now."""
        self.take(task.scraper.attempt(task.family, task.interval_us), time.monotonic())

    def take(self, scrape: Scrape, now: float) -> None:
        """Update the state of a family from a scrape."""
        with self._lock:
            if scrape.identity is not None and scrape.identity.kafka_version:
                self._identity = scrape.identity
            track = self._tracks[scrape.source, scrape.family]
            looked = now <= track.until
            # A symptom after an interval without responses starts now.
            before = track.symptoms if looked else {}
            track.symptoms = {}
            if scrape.answer is None or scrape.outcome != "ok":
                track.until, track.why = -math.inf, scrape.error or scrape.outcome
                return
            if (offsets := scrape.answer.offsets) is not None:
                for rises in increases(track.offsets.advance(offsets, after_gap=not looked)):
                    add_up(track.lost, rises)
            units = {metric.name: metric.unit for metric in track.family.metrics}
            readings = (reading.values for reading in scrape.answer.readings)
            for series, value in chain(track.lost.items(), *(one.items() for one in readings)):
                kind, word = SYMPTOMS.get(series.metric, ("", ""))
                if kind and value is not None and value > 0:
                    is_loss, unit = series in track.lost, units[series.metric]
                    new = Symptom(kind, word, series, 0, unit, now, not looked and not is_loss)
                    low = track.lost.get(series._replace(metric=LOW), 0.0) if is_loss else None
                    known = before.get(series, new)
                    track.symptoms[series] = known._replace(value=value, least=low)
            track.reports_for_all = any(
                reading.metric == _REPORTERS and bool(reading.zeros or reading.values)
                for reading in scrape.answer.readings
            )
            track.seen, track.until = now, now + track.max_gap
            track.why = "the last response is too old"

    def state(self, now: float) -> State:
        """Return all symptoms and the unknown families."""
        with self._lock:
            tracks = self._tracks.values()
            known = [track for track in tracks if now <= track.until]
            several = len({source for source, _ in self._tracks}) > 1
            unknown = [
                Unknown(f"{source} {name}" if several else name, track.why, track.seen)
                for (source, name), track in self._tracks.items()
                if now > track.until
            ]
            counts = {kind: count for kind in KINDS if (count := _count(kind, tracks, now))}
            symptoms = sorted(_symptoms(known).values(), key=_severity)
            return State(self._identity, counts, symptoms, unknown, bool(tracks) and not known)


def _symptoms(tracks: Iterable[_Track]) -> dict[Series, Symptom]:
    """Return one symptom per series: the highest value that a source reports."""
    found: dict[Series, Symptom] = {}
    for series, symptom in chain.from_iterable(track.symptoms.items() for track in tracks):
        known = found.get(series, symptom)
        if known is symptom or known.value < symptom.value:
            found[series] = symptom._replace(since=min(symptom.since, known.since))
    return found


def kinds_of(family: Family) -> tuple[str, ...]:
    """Return the kinds of symptoms that a family's metrics can show."""
    found = {SYMPTOMS[metric.name][0] for metric in family.metrics if metric.name in SYMPTOMS}
    return tuple(kind for kind in KINDS if kind in found)


def _count(kind: str, tracks: Collection[_Track], now: float) -> str | None:
    """Return the number of symptoms, as in ``State``; None if no family has the kind."""
    reporting = [track for track in tracks if kind in kinds_of(track.family)]
    if not reporting or any(now > track.until for track in reporting):
        return "?" if reporting else None
    number = sum(symptom.kind == kind for symptom in _symptoms(reporting).values())
    shared = [track.family for track in reporting if track.family.via == "admin"]
    if number or kind not in _FOR_ALL or all("broker" not in family.roles for family in shared):
        return f"{number:,}"
    reporters = [
        track for track in tracks if any(m.name == _REPORTERS for m in track.family.metrics)
    ]
    if not reporters or any(now > track.until for track in reporters):
        return "?"
    return "0" if any(track.reports_for_all for track in reporters) else "-"


def _severity(symptom: Symptom) -> tuple[int, str, float, float, str, int, str]:
    rank, series = KINDS.index(symptom.kind), symptom.series
    number = -1 if series.partition is None else series.partition
    topic = series.topic or ""
    return rank, symptom.unit, -symptom.value, symptom.since, topic, number, str(series)
