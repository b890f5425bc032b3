"""KIP-1002: what fetching indexes from the remote tier costs, and what one fetch of all would save.

No Kafka release counts its index fetches. Where the Aiven plugin's beans tell they are measured;
elsewhere they are modelled from remote reads. What one fetch would save is always a model, for no
plugin has it. docs/remote-index.md has the formulas and what they leave out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Basis = Literal["measured", "modelled"]

INDEXES: Final = 3
"""Indexes that a broker asks for when it has none of a segment: offset, time and transaction."""

_FEWEST: Final = 2  # a segment without aborted transactions has no transaction index

_COUNTERS: Final = {
    "reads": "kafka.broker.remote_log_reader.fetches",
    "requests": "kafka.topic.remote_fetch.requests",
    "read_bytes": "kafka.topic.remote_fetch.bytes",
    "hits": "kafka.rsm.index_cache.hits",
    "misses": "kafka.rsm.index_cache.misses",
    "load_ns": "kafka.rsm.index_cache.load_time",
}
_GAUGES: Final = {
    # Both are told by the same scrapes: their ratio is a mean segment, whatever the time was.
    "stored_byte_seconds": "kafka.topic.remote_log_size.bytes",
    "stored_segment_seconds": "kafka.topic.remote_log_metadata_count",
}
_READ_TIME: Final = "kafka.broker.remote_log_reader.fetch_time.mean"


class Bounds(NamedTuple):
    """A figure and what the truth lies between; None: not known."""

    value: float | None
    low: float | None
    high: float | None

    def times(self, factor: float) -> Bounds:
        """All three, multiplied."""
        return Bounds(*(None if one is None else one * factor for one in self))


NOT_KNOWN: Final = Bounds(None, None, None)


class Counted(NamedTuple):
    """What a broker told of its remote reads over a period; None: it did not tell.

    Attributes:
        source: The broker.
        reads: Remote reads; each is of one segment.
        requests: The same as told per topic, for brokers before 3.8.
        read_bytes: Bytes they read.
        stored_byte_seconds: Bytes in the remote tier of what it leads, times seconds.
        stored_segment_seconds: Segments that these are, times seconds.
        read_ms: Mean time of a remote read, milliseconds.
        hits: Index fetches that the plugin had at hand.
        misses: Index fetches that went to the store.
        load_ns: Time that both took, nanoseconds.
    """

    source: str
    reads: float | None = None
    requests: float | None = None
    read_bytes: float | None = None
    stored_byte_seconds: float | None = None
    stored_segment_seconds: float | None = None
    read_ms: float | None = None
    hits: float | None = None
    misses: float | None = None
    load_ns: float | None = None


class Cost(NamedTuple):
    """What a broker's index fetches cost, and what they would if one fetch brought all.

    Attributes:
        source: The broker.
        basis: Whether ``fetches``, ``round_trips`` and ``seconds`` are measured or modelled.
        fetches: Indexes that the broker asked the plugin for.
        round_trips: Those that went to the store.
        seconds: Time they took.
        at_once: Round trips if one fetched all indexes of a segment; modelled.
        saved: Round trips that this saves; modelled.
        saved_seconds: Time that this saves; modelled.
    """

    source: str
    basis: Basis
    fetches: Bounds
    round_trips: Bounds
    seconds: Bounds
    at_once: Bounds
    saved: Bounds
    saved_seconds: Bounds

    def as_json(self) -> dict[str, Any]:
        """As docs/report-json.md describes it."""
        told: dict[str, Any] = {"source": self.source, "basis": self.basis}
        for name, figure in self._asdict().items():
            if isinstance(figure, Bounds):
                told |= {f"{name}{end}": figure[at] for at, end in enumerate(("", "_low", "_high"))}
        return told


def costs(brokers: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Cost]:
    """The cost of each broker that reads remotely, in the order of their names.

    Args:
        brokers: Sums of gold/brokers over a period, by source and metric.
    """
    found = (cost(_counted(source, sums)) for source, sums in sorted(brokers.items()))
    return [one for one in found if one is not None]


def _counted(source: str, sums: Mapping[str, Mapping[str, Any]]) -> Counted:
    told = {name: sums.get(metric, {}).get("increase") for name, metric in _COUNTERS.items()}
    told |= {name: sums.get(metric, {}).get("value_seconds") for name, metric in _GAUGES.items()}
    time = sums.get(_READ_TIME, {})
    positive = time.get("positive_us")
    return Counted(
        source, **told, read_ms=time["value_seconds"] * 1e6 / positive if positive else None
    )


def cost(one: Counted) -> Cost | None:
    """What a broker's index fetches cost; None where it told nothing of remote reads."""
    if one.misses is not None:
        return _measured(one, one.misses)
    reads = one.requests if one.reads is None else one.reads
    return None if reads is None else _modelled(one, reads)


def _measured(one: Counted, misses: float) -> Cost:
    """Today's figures as the plugin counts them; a segment's indexes are missing together."""
    asked = None if one.hits is None else one.hits + misses
    fewest, most = math.ceil(misses / INDEXES), math.ceil(misses / _FEWEST)
    saved = Bounds(None, misses - most, misses - fewest)
    spent = None if one.load_ns is None else one.load_ns / 1e9
    each = None if spent is None else spent / max(misses, 1)
    return Cost(
        one.source,
        "measured",
        fetches=Bounds(asked, asked, asked),
        round_trips=Bounds(misses, misses, misses),
        seconds=Bounds(spent, spent, spent),
        at_once=Bounds(None, fewest, most),
        saved=saved,
        saved_seconds=NOT_KNOWN if each is None else saved.times(each),
    )


def _modelled(one: Counted, reads: float) -> Cost:
    """All figures from remote reads: the first of a segment fetches its indexes."""
    sets = Bounds(_sets(one, reads), 0.0, reads)
    seconds = Bounds(*(_seconds(one, reads, number) for number in sets))
    return Cost(
        one.source,
        "modelled",
        fetches=sets.times(INDEXES),
        round_trips=sets.times(INDEXES),
        seconds=seconds,
        at_once=sets,
        saved=sets.times(INDEXES - 1),
        saved_seconds=seconds.times((INDEXES - 1) / INDEXES),
    )


def _sets(one: Counted, reads: float) -> float | None:
    """How many segments were read, each of them once and as a whole."""
    if not reads:
        return 0.0
    if one.read_bytes is None or not one.stored_byte_seconds or not one.stored_segment_seconds:
        return None
    segment_bytes = one.stored_byte_seconds / one.stored_segment_seconds
    return min(reads, max(1.0, math.ceil(one.read_bytes / segment_bytes)))


def _seconds(one: Counted, reads: float, sets: float | None) -> float | None:
    """The indexes' share of the reads' time, every round trip taking as long as any other."""
    if sets is None:
        return None
    if not sets:
        return 0.0
    if one.read_ms is None:
        return None
    trips = INDEXES * sets
    return reads * one.read_ms / 1e3 * trips / (reads + trips)
