"""Symptoms: what is wrong on a broker now, since when, and which families are unknown.

Steady instants in seconds; a family that was not read lately is unknown, never well.
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
    "kafka.partition.upload_tier_lag": ("lagging", "copy to tier"),
    "kafka.partition.delete_tier_lag": ("lagging", "delete in tier"),
}
"""Metrics that are bad above zero, the worst first: of which kind, and which of that kind."""
KINDS: Final = tuple(dict.fromkeys(kind for kind, _ in SYMPTOMS.values()))
_FOR_ALL: Final = ("no leader", "fenced")
"""Kinds that Admin families report from two brokers only, for all."""
_REPORTERS: Final = "kafka.cluster.node.fenced"
"""Only the two brokers that report for all have any series of it."""
NOT_YET: Final = "not read yet"


class Symptom(NamedTuple):
    """One thing that is wrong.

    Attributes:
        kind: One of ``KINDS``.
        word: Which of that kind; may be empty.
        series: Who has it.
        value: How bad it is, in the unit of the metric.
        unit: UCUM unit of the value.
        least: Where only bounds are known, the lower one; the value is the upper one.
        since: When it was first seen.
        at_first_look: It was there when we first looked, so it began before ``since``.
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
    """A family of a source that was not read lately: why, in one line, and since when."""

    family: str
    why: str
    since: float


class State(NamedTuple):
    """Everything at one instant.

    Attributes:
        identity: The source that answered; None: no answer yet.
        counts: How many have a symptom, by kind; ``?``: unknown, ``-``: other brokers report it.
        symptoms: What is wrong, the worst first.
        unknown: What was not read lately.
        blind: Whether nothing at all is known.
    """

    identity: Identity | None
    counts: Mapping[str, str]
    symptoms: Sequence[Symptom]
    unknown: Sequence[Unknown]
    blind: bool


@dataclass(slots=True)
class _Track:
    """The state of one family: until when its last answer holds, and why it does not."""

    family: Family
    max_gap: float
    seen: float
    until: float = -math.inf
    why: str = NOT_YET
    symptoms: dict[Series, Symptom] = field(default_factory=dict)
    reports_for_all: bool = False
    offsets: NonConsumed = field(default_factory=NonConsumed)
    lost: dict[Series, float] = field(default_factory=dict)
    """What groups lost since the first answer."""


class Board:
    """Remembers since when each symptom is there; any thread may call it.

    Args:
        tasks: What is read.
        now: The instant it begins at.

    Attributes:
        tasks: Those whose family has symptoms.
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
        """Read a family now."""
        self.take(task.scraper.attempt(task.family, task.interval_us), time.monotonic())

    def take(self, scrape: Scrape, now: float) -> None:
        """Take in one attempt."""
        with self._lock:
            if scrape.identity is not None and scrape.identity.kafka_version:
                self._identity = scrape.identity
            track = self._tracks[scrape.source, scrape.family]
            looked = now <= track.until
            # A symptom after a time without an answer is first seen now.
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
                one.metric == _REPORTERS and bool(one.zeros or one.values)
                for one in scrape.answer.readings
            )
            track.seen, track.until = now, now + track.max_gap
            track.why = "the last answer is too old"

    def state(self, now: float) -> State:
        """All symptoms, and the families that are unknown."""
        with self._lock:
            tracks = self._tracks.values()
            known = [track for track in tracks if now <= track.until]
            several = len({source for source, _ in self._tracks}) > 1
            unknown = [
                Unknown(f"{source} {name}" if several else name, one.why, one.seen)
                for (source, name), one in self._tracks.items()
                if now > one.until
            ]
            counts = {kind: count for kind in KINDS if (count := _count(kind, tracks, now))}
            symptoms = sorted(_symptoms(known).values(), key=_badness)
            return State(self._identity, counts, symptoms, unknown, bool(tracks) and not known)


def _symptoms(tracks: Iterable[_Track]) -> dict[Series, Symptom]:
    """What several sources report, each once: the worst that one of them says."""
    found: dict[Series, Symptom] = {}
    for series, one in chain.from_iterable(track.symptoms.items() for track in tracks):
        known = found.get(series, one)
        if known is one or known.value < one.value:
            found[series] = one._replace(since=min(one.since, known.since))
    return found


def kinds_of(family: Family) -> tuple[str, ...]:
    """The kinds of symptoms that a family's metrics show."""
    found = {SYMPTOMS[metric.name][0] for metric in family.metrics if metric.name in SYMPTOMS}
    return tuple(kind for kind in KINDS if kind in found)


def _count(kind: str, tracks: Collection[_Track], now: float) -> str | None:
    """How many have a symptom, as in ``State``; None if no family reads it."""
    reporting = [track for track in tracks if kind in kinds_of(track.family)]
    if not reporting or any(now > track.until for track in reporting):
        return "?" if reporting else None
    number = sum(one.kind == kind for one in _symptoms(reporting).values())
    shared = [one for one in reporting if one.family.via == "admin"]
    if number or kind not in _FOR_ALL or all("broker" not in one.family.roles for one in shared):
        return f"{number:,}"
    reporters = [one for one in tracks if any(m.name == _REPORTERS for m in one.family.metrics)]
    if not reporters or any(now > one.until for one in reporters):
        return "?"
    return "0" if any(one.reports_for_all for one in reporters) else "-"


def _badness(symptom: Symptom) -> tuple[int, str, float, float, str, int, str]:
    rank, series = KINDS.index(symptom.kind), symptom.series
    number = -1 if series.partition is None else series.partition
    topic = series.topic or ""
    return rank, symptom.unit, -symptom.value, symptom.since, topic, number, str(series)
