"""Use of remote storage, reads from it (KIP-1002), and the cost of their index fetches.

No Kafka release counts its index fetches. They are measured if a plugin counts them (jmxlake's in
deploy/kafka, which can fetch all indexes of a segment at once, or Aiven's), and otherwise modelled
from remote reads. The saving of a fetch at once, in time and in requests, is measured with a plugin
that does it, and modelled otherwise. docs/questions.md has the formulas and their limits.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import COPY_LAG
from lakehouse.report.facts.fields import (
    SOURCE,
    TOPIC,
    UNKNOWN,
    Bounds,
    Known,
    Means,
    Metrics,
    Question,
    Rows,
)
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.gold_figures import (
    HeldBack,
    Increase,
    Max,
    Mean,
    Min,
    Rise,
    Sum,
    Unread,
    figures,
    listed,
    of_sources,
    unknown_us,
    unread_times,
    with_bounds,
)
from lakehouse.report.facts.sections.tier_lag import LaggingTopic
from lakehouse.slo.sla_statement import Statement, unknown_of

_FETCHES: Final = "kafka.topic.remote_fetch.requests"
_READS: Final = "kafka.broker.remote_log_reader.fetches"
_CACHE: Final = "kafka.rsm.index_cache"
_INDEX: Final = "kafka.rsm.index_fetch"
_OBJECT: Final = "kafka.rsm.index_object"
_LOOK_UPS_EXPIRED: Final = "kafka.broker.remote_list_offsets.expired"

INDEXES: Final = 3
"""Indexes that a broker fetches for a segment without cached indexes: offset, time, transaction."""


class ReadTopic(NamedTuple):
    """Reads of a topic from remote storage."""

    topic: Annotated[str, TOPIC]
    requests: Annotated[Bounds, Means("reads from remote storage", Rise(_FETCHES))]
    bytes: Annotated[Bounds, Means(
        "bytes read from remote storage", Rise("kafka.topic.remote_fetch.bytes"))]  # fmt: skip
    errors: Annotated[Bounds, Means(
        "reads failed", Rise("kafka.topic.remote_fetch.errors", _FETCHES))]  # fmt: skip
    look_ups_expired: Annotated[Bounds, Means(
        "offset look-ups that timed out",
        Rise("kafka.partition.remote_list_offsets.expired"))]  # fmt: skip


class ReadingBroker(NamedTuple):
    """Reads of a broker from remote storage, and the time in which its fetch quota delayed them."""

    source: Annotated[str, SOURCE]
    reads: Annotated[Bounds, Means("reads from remote storage", Rise(_READS))]
    read_ms_mean: Annotated[Known, Means(
        "mean duration of a read, milliseconds",
        Mean("kafka.broker.remote_log_reader.fetch_time.mean", above_zero=True))]  # fmt: skip
    reads_expired: Annotated[Bounds, Means(
        "reads that timed out", Rise("kafka.broker.remote_fetch.expired", _READS))]  # fmt: skip
    look_ups_expired: Annotated[Bounds, Means(
        "offset look-ups that timed out", Rise(_LOOK_UPS_EXPIRED, _READS))]  # fmt: skip
    waiting_max: Annotated[Known, Means(
        "maximum number of queued reads at one instant",
        Max("kafka.broker.remote_log_reader.task_queue_size"))]  # fmt: skip
    idle_min: Annotated[Known, Means(
        "minimum idle share of the reader threads, 0 to 1",
        Min("kafka.broker.remote_log_reader.idle"))]  # fmt: skip
    held_back_us: Annotated[Bounds, Means(
        "time in which its fetch quota delayed reads, microseconds; empty: no MBean",
        HeldBack("kafka.broker.remote_fetch.throttle_time.avg"))]  # fmt: skip
    held_back_ms_max: Annotated[Known, Means(
        "maximum delay of a read, milliseconds",
        Max("kafka.broker.remote_fetch.throttle_time.max"))]  # fmt: skip
    fetch_rate_max: Annotated[Known, Means(
        "maximum read rate, bytes per second",
        Max("kafka.broker.remote_fetch.byte_rate"))]  # fmt: skip
    unknown_us: Annotated[int | None, UNKNOWN]


class Plugin(NamedTuple):
    """Counters of Aiven's plugin on a broker: its store, and its index cache."""

    source: Annotated[str, SOURCE]
    uploads: Annotated[Bounds, Means("objects uploaded", Rise("kafka.rsm.upload.requests"))]
    uploaded_bytes: Annotated[Bounds, Means("bytes uploaded", Rise("kafka.rsm.upload.bytes"))]
    copy_ms_mean: Annotated[Known, Means(
        "mean duration of a segment upload, milliseconds",
        Mean("kafka.rsm.copy_time.avg", above_zero=True))]  # fmt: skip
    copy_ms_max: Annotated[Known, Means(
        "maximum duration of it, milliseconds", Max("kafka.rsm.copy_time.max"))]  # fmt: skip
    requested_bytes: Annotated[Bounds, Means(
        "bytes that the broker requested", Rise("kafka.rsm.fetch.requested_bytes"))]  # fmt: skip
    deletions: Annotated[Bounds, Means("segment deletions", Rise("kafka.rsm.delete.requests"))]
    deleted_bytes: Annotated[Bounds, Means("bytes deleted", Rise("kafka.rsm.delete.bytes"))]
    deletions_failed: Annotated[Bounds, Means(
        "segment deletions failed", Rise("kafka.rsm.delete.errors"))]  # fmt: skip
    delete_ms_mean: Annotated[Known, Means(
        "mean duration of a deletion, milliseconds",
        Mean("kafka.rsm.delete_time.avg", above_zero=True))]  # fmt: skip
    delete_ms_max: Annotated[Known, Means(
        "maximum duration of it, milliseconds", Max("kafka.rsm.delete_time.max"))]  # fmt: skip
    index_loads: Annotated[Bounds, Means(
        "indexes loaded into the cache", Rise("kafka.rsm.index_cache.loads"))]  # fmt: skip
    index_loads_failed: Annotated[Bounds, Means(
        "index loads failed", Rise("kafka.rsm.index_cache.load_failures"))]  # fmt: skip
    index_evictions: Annotated[Bounds, Means(
        "indexes evicted from the cache", Rise("kafka.rsm.index_cache.evictions"))]  # fmt: skip
    index_entries_max: Annotated[Known, Means(
        "maximum number of indexes in the cache", Max("kafka.rsm.index_cache.size"))]  # fmt: skip
    unknown_us: Annotated[int | None, UNKNOWN]


class RemoteReadCounts(NamedTuple):
    """Counters of a broker from which the cost of its index fetches is computed."""

    source: Annotated[str, SOURCE]
    reads: Annotated[Known, Means("remote reads, of one segment each", Increase(_READS))]
    requests: Annotated[Known, Means(
        "the same, counted by topic; the only count before Kafka 3.8",
        Increase(_FETCHES))]  # fmt: skip
    read_bytes: Annotated[Known, Means("bytes read", Increase("kafka.topic.remote_fetch.bytes"))]
    stored_byte_seconds: Annotated[Known, Means(
        "bytes in remote storage of partitions that it leads, times seconds",
        Sum("kafka.topic.remote_log_size.bytes"))]  # fmt: skip
    stored_segment_seconds: Annotated[Known, Means(
        "segments of these bytes, times seconds, by the same scrapes",
        Sum("kafka.topic.remote_log_metadata_count"))]  # fmt: skip
    read_ms: Annotated[Known, Means(
        "mean duration of a remote read, milliseconds",
        Mean("kafka.broker.remote_log_reader.fetch_time.mean", above_zero=True))]  # fmt: skip
    hits: Annotated[Known, Means(
        "hits of the index cache of Aiven's plugin", Increase(f"{_CACHE}.hits"))]  # fmt: skip
    misses: Annotated[Known, Means("its misses", Increase(f"{_CACHE}.misses"))]
    load_ns: Annotated[Known, Means("time of both, nanoseconds", Increase(f"{_CACHE}.load_time"))]
    fetches: Annotated[Known, Means(
        "index fetches that our plugin counted", Increase(f"{_INDEX}.fetches"))]  # fmt: skip
    sets: Annotated[Known, Means(
        "index fetches that were the first of a segment", Increase(f"{_INDEX}.sets"))]  # fmt: skip
    round_trips: Annotated[Known, Means(
        "requests to the store that the broker waited for",
        Increase(f"{_INDEX}.round_trips"))]  # fmt: skip
    wait_ns: Annotated[Known, Means(
        "wait for indexes, nanoseconds", Increase(f"{_INDEX}.wait_time"))]  # fmt: skip
    request_ns: Annotated[Known, Means(
        "time of all index requests, including concurrent requests, nanoseconds",
        Increase(f"{_INDEX}.request_time"))]  # fmt: skip
    index_requests: Annotated[Known, Means(
        "requests of the broker plugin to the wrapped plugin",
        Increase(f"{_INDEX}.requests"))]  # fmt: skip
    object_fetches: Annotated[Known, Means(
        "indexes that Aiven's plugin requested from jmxlake's storage backend",
        Increase(f"{_OBJECT}.fetches"))]  # fmt: skip
    object_requests: Annotated[Known, Means(
        "requests of jmxlake's storage backend to the store",
        Increase(f"{_OBJECT}.requests"))]  # fmt: skip


class Cost(NamedTuple):
    """The cost of a broker's index fetches, and the cost with one fetch for all indexes."""

    source: Annotated[str, SOURCE]
    basis: Annotated[Literal["measured", "modelled"] | None, Means(
        "basis of fetches, round_trips and seconds; empty: the broker "
        "was not observed")] = None  # fmt: skip
    way: Annotated[Literal["one by one", "at once"] | None, Means(
        "how the broker fetches the indexes of a segment; at once: at_once, saved and "
        "saved_seconds are measured, otherwise modelled")] = None  # fmt: skip
    fetches: Annotated[Bounds, Means(
        "indexes that the broker requested from the plugin")] = Bounds()  # fmt: skip
    round_trips: Annotated[Bounds, Means(
        "sequential requests to the store that the broker waited for")] = Bounds()  # fmt: skip
    seconds: Annotated[Bounds, Means("wait, seconds")] = Bounds()
    segment_seconds: Annotated[Bounds, Means(
        "wait for the indexes of a segment, seconds")] = Bounds()  # fmt: skip
    at_once: Annotated[Bounds, Means(
        "round trips if one request fetches all indexes of a segment")] = Bounds()  # fmt: skip
    saved: Annotated[Bounds, Means("round trips that this saves")] = Bounds()
    saved_seconds: Annotated[Bounds, Means("wait that this saves, seconds")] = Bounds()
    requests: Annotated[Bounds, Means(
        "requests that the store charges for")] = Bounds()  # fmt: skip
    requests_saved: Annotated[Bounds, Means(
        "requests that one request for all indexes of a segment saves; 0 if the plugin fetches "
        "them concurrently")] = Bounds()  # fmt: skip
    unknown_us: Annotated[int | None, UNKNOWN] = None


class RemoteReads(NamedTuple):
    """The section on remote reads."""

    topics: Annotated[list[ReadTopic], Means("topics with reads from remote storage")]
    brokers: Annotated[list[ReadingBroker], Means("brokers")]
    indexes: Annotated[list[Cost], Means("brokers with index fetches (docs/questions.md)")]
    plugins: Annotated[list[Plugin], Means("brokers with Aiven's plugin")]


def remote_reads(gold: Gold) -> RemoteReads:
    """Return reads from remote storage, by topic and broker."""
    brokers, away = with_bounds(gold, tables.SOURCES), unread_times(gold, _READS)
    topics = [
        ReadTopic(topic, **figures(ReadTopic, rows))
        for topic, rows in sorted(with_bounds(gold, tables.TOPICS).items())
    ]
    return RemoteReads(
        [one for one in topics if any(figure.value for figure in one[1:])],
        of_sources(ReadingBroker, brokers, _READS, unread=away),
        costs(brokers, away),
        _plugins(brokers, away),
    )


def _plugins(brokers: Mapping[str, Metrics], unread: Mapping[str, Unread]) -> list[Plugin]:
    """Return every broker with an MBean of the Aiven plugin, and brokers never read."""
    known = {
        source: rows
        for source, rows in brokers.items()
        if any(map(_is_known, figures(Plugin, rows).values()))
    }
    return of_sources(Plugin, known, unread=unread)


def _is_known(figure: Bounds | Known) -> bool:
    return (figure.value if isinstance(figure, Bounds) else figure) is not None


def costs(
    brokers: Mapping[str, Mapping[str, Mapping[str, Any]]],
    unread: Mapping[str, Unread] | None = None,
) -> list[Cost]:
    """Return the cost of each broker with remote reads, in the order of names.

    Args:
        brokers: Sums of gold/brokers over a period with bounds, by source and metric.
        unread: Unread time by source. A broker that was never read has a row without figures.
    """
    found, away = {}, unread or {}
    for source, sums in brokers.items():
        one = cost(RemoteReadCounts(source, **figures(RemoteReadCounts, sums)))
        if one is not None:
            found[source] = _at_least(one) if _is_open(sums) else one
    return [
        found.get(source, Cost(source))._replace(unknown_us=unknown_us(away, source))
        for source in listed(found, away)
    ]


def _is_open(sums: Metrics) -> bool:
    """Return True if the broker may have counted more than was read."""
    counters = (row for row in sums.values() if row.get("increase") is not None)
    return any(row["increase_high"] is None for row in counters)


def _at_least(one: Cost) -> Cost:
    """Return the cost if counts may be lost: sums have no high bound, and means no bounds."""
    sums = (
        "fetches", "round_trips", "seconds", "at_once", "saved", "saved_seconds",
        "requests", "requests_saved",
    )  # fmt: skip
    bounds = {name: getattr(one, name)._replace(high=None) for name in sums}
    mean = one.segment_seconds._replace(low=None, high=None)
    return one._replace(**bounds, segment_seconds=mean)


def cost(counts: RemoteReadCounts) -> Cost | None:
    """Return the cost of a broker's index fetches; None if it reported no remote reads."""
    if counts.object_fetches is not None and counts.object_requests is not None:
        return _whole(counts, counts.object_fetches, counts.object_requests)
    if counts.fetches is not None and counts.round_trips is not None:
        return _counted(counts, counts.fetches, counts.round_trips)
    if counts.misses is not None:
        return _measured(counts, counts.misses)
    reads = counts.requests if counts.reads is None else counts.reads
    return None if reads is None else _modelled(counts, reads)


def _whole(counts: RemoteReadCounts, fetches: float, requests: float) -> Cost:
    """Return figures from jmxlake's storage backend, which fetches whole objects of indexes."""
    seconds = _divided(counts.load_ns if counts.wait_ns is None else counts.wait_ns, 1e9)
    saved = fetches - requests  # below zero if the objects do not fit into its memory
    each = 0.0 if not requests else _divided(seconds, requests)
    saved_seconds = None if each is None else max(0.0, saved) * each
    return Cost(
        counts.source,
        "measured",
        "at once",
        fetches=_exactly(fetches + (counts.hits or 0.0)),
        round_trips=_exactly(requests),
        seconds=_exactly(seconds),
        segment_seconds=_exactly(_divided(seconds, requests)),
        at_once=_exactly(requests),
        saved=_exactly(saved),
        saved_seconds=Bounds(saved_seconds, 0.0, saved_seconds),
        requests=_exactly(requests),
        requests_saved=_exactly(saved),
    )


def _counted(counts: RemoteReadCounts, fetches: float, trips: float) -> Cost:
    """Return figures from jmxlake's plugin; ``at once`` has fewer round trips than fetches."""
    waited, sets, ahead = _divided(counts.wait_ns, 1e9), counts.sets, fetches > trips
    at_once, requests = trips if ahead else sets, counts.index_requests
    saved = fetches - trips if ahead else None if sets is None else trips - sets
    if ahead:
        requests_saved = None if requests is None else fetches - requests
        saved_seconds = _saved_seconds(counts, waited, fetches)
    else:  # part of the wait, if all take equally long
        requests_saved = saved
        saved_seconds = None if waited is None or saved is None else waited * saved / max(trips, 1)
    return Cost(
        counts.source,
        "measured",
        "at once" if ahead else "one by one",
        fetches=_exactly(fetches),
        round_trips=_exactly(trips),
        seconds=_exactly(waited),
        segment_seconds=_exactly(_divided(waited, sets)),
        at_once=_exactly(at_once),
        saved=_exactly(saved),
        saved_seconds=Bounds(saved_seconds, 0.0, saved_seconds),
        requests=_exactly(requests),
        requests_saved=_exactly(requests_saved),
    )


def _saved_seconds(counts: RemoteReadCounts, waited: float | None, fetches: float) -> float | None:
    """Return the wait that was saved, if independent requests one by one take as long each."""
    seconds, requests = _divided(counts.request_ns, 1e9), counts.index_requests
    if waited is None or seconds is None:
        return None
    return max(0.0, seconds * (fetches / requests if requests else 1.0) - waited)


def _measured(counts: RemoteReadCounts, misses: float) -> Cost:
    """Return figures from Aiven's plugin; all indexes of a segment are missing together."""
    fetches = None if counts.hits is None else counts.hits + misses
    # A segment without aborted transactions has no transaction index.
    fewest, most = math.ceil(misses / INDEXES), math.ceil(misses / (INDEXES - 1))
    saved = Bounds(None, misses - most, misses - fewest)
    seconds = _divided(counts.load_ns, 1e9)
    each = None if seconds is None else seconds / max(misses, 1)
    return Cost(
        counts.source,
        "measured",
        "one by one",
        fetches=_exactly(fetches),
        round_trips=_exactly(misses),
        seconds=_exactly(seconds),
        segment_seconds=Bounds(None, _divided(seconds, most), _divided(seconds, fewest)),
        at_once=Bounds(None, fewest, most),
        saved=saved,
        saved_seconds=saved.times(each),
        requests=_exactly(misses),
        requests_saved=saved,
    )


def _modelled(counts: RemoteReadCounts, reads: float) -> Cost:
    """Return figures modelled from remote reads: a segment's first read fetches its indexes."""
    segments = Bounds(_segments(counts, reads), 0.0, reads)
    seconds = Bounds(*(_seconds(counts, reads, number) for number in segments))
    return Cost(
        counts.source,
        "modelled",
        "one by one",
        fetches=segments.times(INDEXES),
        round_trips=segments.times(INDEXES),
        seconds=seconds,
        segment_seconds=Bounds(_divided(seconds.value, segments.value), 0.0, None),
        at_once=segments,
        saved=segments.times(INDEXES - 1),
        saved_seconds=seconds.times((INDEXES - 1) / INDEXES),
        requests=segments.times(INDEXES),
        requests_saved=segments.times(INDEXES - 1),
    )


def _segments(counts: RemoteReadCounts, reads: float) -> float | None:
    """Return the number of segments read, if each was read once and as a whole."""
    stored, segments = counts.stored_byte_seconds, counts.stored_segment_seconds
    if not reads:
        return 0.0
    if counts.read_bytes is None or not stored or not segments:
        return None
    return min(reads, max(1.0, math.ceil(counts.read_bytes / (stored / segments))))


def _seconds(counts: RemoteReadCounts, reads: float, segments: float | None) -> float | None:
    """Return the indexes' share of the time of all reads, with equally long round trips."""
    if not segments:
        return segments  # none, or not known
    if counts.read_ms is None:
        return None
    trips = INDEXES * segments
    return reads * counts.read_ms / 1e3 * trips / (reads + trips)


def _exactly(figure: float | None) -> Bounds:
    return Bounds(figure, figure, figure)


def _divided(figure: float | None, by: float | None) -> float | None:
    return figure / by if figure is not None and by else None


QUESTION: Final = Question(
    name="remote-reads",
    section="tiered",
    read="kafka.topic.remote_fetch.bytes",
    gold=("topics",),
    noun="tiered topic",
    names=("topic",),
    subjects=Rows(LaggingTopic, "tier_lag.topics", ("topic",)),
    fact="remote_reads.topics",
    bad=(
        Rows(ReadTopic, "remote_reads.topics", ("requests", "bytes")),
        Rows(ReadingBroker, "remote_reads.brokers", ("held_back_us",)),
    ),
    shows=(
        ReadTopic, ReadingBroker, RemoteReadCounts, Plugin,
        "kafka.topic.remote_fetch.*", "kafka.rsm.index_cache.*", "kafka.rsm.index_fetch.*",
        "kafka.rsm.index_object.*",
    ),
)  # fmt: skip


class TieredTopic(NamedTuple):
    """Use of remote storage by a topic, which providers charge for."""

    topic: Annotated[str, TOPIC]
    uploaded_bytes: Annotated[Bounds, Means(
        "bytes uploaded to remote storage", Rise("kafka.topic.remote_copy.bytes"))]  # fmt: skip
    read_bytes: Annotated[Bounds, Means(
        "bytes read from remote storage", Rise("kafka.topic.remote_fetch.bytes"))]  # fmt: skip
    stored_byte_seconds: Annotated[Known, Means(
        "bytes in remote storage times observed seconds",
        Sum("kafka.topic.remote_log_size.bytes"))]  # fmt: skip
    size_ms_max: Annotated[Known, Means(
        "maximum time a broker took to compute that size, milliseconds",
        Max("kafka.topic.remote_log_size.computation_time"))]  # fmt: skip
    unknown_us: Annotated[int | None, UNKNOWN]


class Tiering(NamedTuple):
    """The section on the use of remote storage."""

    topics: Annotated[list[TieredTopic], Means("topics with bytes in remote storage")]


def tiering(gold: Gold, statements: Sequence[Statement]) -> Tiering:
    """Return bytes uploaded, read and stored of each topic with any of these."""
    unknown = {key[0]: us for key, us in unknown_of(statements, COPY_LAG).items()}
    topics = [
        TieredTopic(topic, **figures(TieredTopic, rows), unknown_us=unknown.get(topic))
        for topic, rows in sorted(with_bounds(gold, tables.TOPICS).items())
    ]
    return Tiering(
        [
            one
            for one in topics
            if one.uploaded_bytes.value or one.read_bytes.value or one.stored_byte_seconds
        ]
    )
