"""Symptoms: what is wrong on a broker right now, since when, and what of it is not known.

Steady instants in seconds; a family that was not read lately is unknown, never well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.catalogue import Family
from collector.samples import Identity, Series
from lakehouse.tables import MAX_GAP_INTERVALS

if TYPE_CHECKING:
    from collector.plan import Task
    from collector.samples import Scrape

LEADERLESS, UNDER_MIN_ISR, FENCED, THROTTLED, LAGGING = KINDS = (
    "no leader", "under min ISR", "fenced", "throttled", "lagging"
)  # fmt: skip
"""What may be wrong, the worst first."""

_FOR_ALL: Final = frozenset((LEADERLESS, FENCED))
"""What Admin tells to two brokers only, who say it for all."""
_REPORTERS: Final = "kafka.cluster.node.fenced"
"""Only the two that tell for all have any series of it."""

_SYMPTOMS: Final = {
    "kafka.partition.leaderless": (LEADERLESS, ""),
    "kafka.controller.offline_partitions": (LEADERLESS, "in the cluster"),
    "kafka.partition.under_min_isr": (UNDER_MIN_ISR, ""),
    "kafka.controller.fenced_brokers": (FENCED, "in the cluster"),
    "kafka.cluster.node.fenced": (FENCED, ""),
    "kafka.client.produce.throttle_time": (THROTTLED, "produce"),
    "kafka.client.fetch.throttle_time": (THROTTLED, "fetch"),
    "kafka.client.request.throttle_time": (THROTTLED, "request"),
    "kafka.client.controller_mutation.throttle_time": (THROTTLED, "topic changes"),
    "kafka.producer.produce_throttle_time.avg": (THROTTLED, "produce"),
    "kafka.consumer.fetch_throttle_time.avg": (THROTTLED, "fetch"),
    "kafka.topic.remote_copy_lag.bytes": (LAGGING, "copy to tier"),
    "kafka.topic.remote_delete_lag.bytes": (LAGGING, "delete in tier"),
    "kafka.partition.upload_tier_lag": (LAGGING, "copy to tier"),
    "kafka.partition.delete_tier_lag": (LAGGING, "delete in tier"),
}
"""Metrics that are bad above zero: of which kind, and a word to tell them apart."""


class Symptom(NamedTuple):
    """One thing that is wrong.

    Attributes:
        kind: One of ``KINDS``.
        word: Which of that kind; may be empty.
        series: Who has it.
        value: How bad it is, in the unit of the metric.
        unit: UCUM unit of the value.
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


class Unknown(NamedTuple):
    """A family that was not read lately.

    Attributes:
        family: Its name.
        kinds: What could be wrong without anybody seeing it.
        why: One line.
        since: When it was last seen well, or first asked for.
        place: What it is read via.
    """

    family: str
    kinds: tuple[str, ...]
    why: str
    since: float
    place: str = ""


class State(NamedTuple):
    """Everything at one instant, the worst first.

    Of the kinds in ``untold`` this node tells nothing, since two other brokers do; whether it tells
    of those in ``doubtful`` is not known.
    """

    identity: Identity | None
    symptoms: Sequence[Symptom]
    unknown: Sequence[Unknown]
    untold: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()

    def number_of(self, kind: str) -> int | None:
        """How many have this symptom; None where that is not known."""
        if any(kind in family.kinds for family in self.unknown):
            return None
        number = sum(symptom.kind == kind for symptom in self.symptoms)
        return None if number == 0 and kind in self.doubtful else number


@dataclass(slots=True)
class _Track:
    """What is known of one family."""

    family: Family
    max_gap: float
    seen: float
    why: str = "not read yet"
    well: bool = False
    symptoms: dict[Series, Symptom] = field(default_factory=dict)

    def vouches(self, now: float) -> bool:
        """Whether the last answer still says how it is."""
        return self.well and now - self.seen <= self.max_gap


class Board:
    """Remembers since when each symptom is there.

    Args:
        tasks: What is read; families that can tell no symptom are left alone.
        now: The instant it begins at.
    """

    def __init__(self, tasks: Sequence[Task], now: float) -> None:
        self._identity: Identity | None = None
        self._tells_for_all: bool | None = None
        self._tracks = {
            task.family.name: _Track(task.family, task.interval_us / 1e6 * MAX_GAP_INTERVALS, now)
            for task in tasks
            if kinds_of(task.family)
        }

    def take(self, scrape: Scrape, now: float) -> None:
        """Take in one attempt."""
        track = self._tracks[scrape.family]
        if any(metric.name == _REPORTERS for metric in track.family.metrics):
            self._tells_for_all = _tells_for_all(scrape)
        if scrape.identity is not None and scrape.identity.kafka_version:
            self._identity = scrape.identity
        if scrape.answer is None:
            # Nobody saw what went on: what comes back later is first seen then.
            track.well, track.symptoms = False, {}
            track.why = scrape.error or scrape.outcome
            return
        units = {metric.name: metric.unit for metric in track.family.metrics}
        looked = track.vouches(now)
        before = track.symptoms if looked else {}
        track.symptoms = {}
        for reading in scrape.answer.readings:
            kind, word = _SYMPTOMS.get(reading.metric, (None, ""))
            if kind is None:
                continue
            for series, value in reading.values.items():
                if value is not None and value > 0:
                    known = before.get(series)
                    track.symptoms[series] = Symptom(
                        kind, word, series, value, units[reading.metric],
                        known.since if known else now,
                        known.at_first_look if known else not looked,
                    )  # fmt: skip
        track.well, track.seen = True, now

    def state(self, now: float) -> State:
        """What is wrong and what is not known."""
        unknown, symptoms = [], list[Symptom]()
        for name, track in self._tracks.items():
            if track.vouches(now):
                symptoms += track.symptoms.values()
            else:
                why = track.why if not track.well else "the last answer is too old"
                kinds, place = kinds_of(track.family), track.family.via
                unknown.append(Unknown(name, kinds, why, track.seen, place))
        symptoms.sort(key=_badness)
        return State(self._identity, symptoms, unknown, *self._others(unknown))

    def _others(self, unknown: Sequence[Unknown]) -> tuple[frozenset[str], frozenset[str]]:
        """The kinds that other brokers tell of, and those of which that is not known."""
        nothing = frozenset[str]()
        ours = {kind for track in self._tracks.values() for kind in _for_all(track.family)}
        tellers = [
            name
            for name, track in self._tracks.items()
            if any(metric.name == _REPORTERS for metric in track.family.metrics)
        ]
        lately = bool(tellers) and not any(one.family in tellers for one in unknown)
        if not lately or self._tells_for_all is None:
            return nothing, frozenset(ours)
        return (nothing if self._tells_for_all else frozenset(ours)), nothing


def _for_all(family: Family) -> frozenset[str]:
    return _FOR_ALL.intersection(kinds_of(family)) if family.via == "admin" else frozenset()


def _tells_for_all(scrape: Scrape) -> bool | None:
    if scrape.answer is None:
        return None
    return any(
        reading.metric == _REPORTERS and bool(reading.zeros or reading.values)
        for reading in scrape.answer.readings
    )


def kinds_of(family: Family) -> tuple[str, ...]:
    """What symptoms a family can tell of."""
    found = {_SYMPTOMS[metric.name][0] for metric in family.metrics if metric.name in _SYMPTOMS}
    return tuple(kind for kind in KINDS if kind in found)


def _badness(symptom: Symptom) -> tuple[int, str, float, float, str, int, str]:
    rank, series = KINDS.index(symptom.kind), symptom.series
    number = -1 if series.partition is None else series.partition
    topic = series.topic or ""
    return rank, symptom.unit, -symptom.value, symptom.since, topic, number, str(series)
