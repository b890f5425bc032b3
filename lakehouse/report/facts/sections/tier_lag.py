"""KIP-963: tiered-storage lag, the bytes that wait for upload or deletion, and its time."""

import datetime as dt
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import COPY_LAG, DELETE_LAG, families
from lakehouse.core.periods import Period
from lakehouse.engines.gold_reader import EXACT
from lakehouse.engines.relation import is_one_of
from lakehouse.report.facts.fields import (
    PARTITION,
    SOURCE,
    TOPIC,
    UNKNOWN,
    Bounds,
    Known,
    Means,
    Question,
    Rows,
)
from lakehouse.report.facts.gold import Gold, attribute
from lakehouse.report.facts.gold_figures import (
    HeldBack,
    Max,
    Mean,
    Min,
    Rise,
    duration,
    figures,
    listed,
    per_second,
    unknown_us,
    unread_times,
    with_bounds,
)
from lakehouse.slo.sla_statement import Statement, unknown_of

LAGGING: Final = {COPY_LAG: COPY_LAG, DELETE_LAG: "kafka.topic.remote_delete_lag.segments"}
"""Metrics above zero while there is a lag: the bytes omit failed deletions."""

_KINDS: Final = {COPY_LAG: "copy", DELETE_LAG: "delete"}
_IS_TIERED: Final = "kafka.topic.remote_storage_enabled"
_HELD_TIME: Final = "kafka.topic.remote_copy_held_back.time"
_HELD_SIZE: Final = "kafka.topic.remote_copy_held_back.bytes"
_UNTIERED: Final = "kafka.partition.untiered_records"
_UPLOAD_LAG: Final = "kafka.partition.upload_tier_lag"
_DELETE_LAG: Final = "kafka.partition.delete_tier_lag"
_WAITING: Final = "kafka.partition.upload_lag"
_DELETABLE: Final = "kafka.partition.delete_lag"
_ORPHANS: Final = "kafka.cluster.remote_orphans"
_REMOTE_BYTES: Final = "kafka.partition.remote.bytes"
_OTHERS: Final = (
    f"{_WAITING}.bytes", f"{_DELETABLE}.bytes", "kafka.partition.upload_held_back.bytes",
    "kafka.partition.upload_running.seconds", "kafka.partition.delete_failed.segments",
    "kafka.partition.remote_abandoned.bytes",
)  # fmt: skip
_MOST_PARTITIONS: Final = 1_000
_STILL_US: Final = 30_000_000  # brokers are read at different instants


class Lag(NamedTuple):
    """Bytes and segments of a topic that wait for upload, or for deletion."""

    lagging_us: Annotated[Bounds, Means("time with lag, microseconds")]
    unknown_us: Annotated[int | None, UNKNOWN]
    max_bytes: Annotated[Known, Means("maximum lag, bytes")]
    max_segments: Annotated[Known, Means("maximum lag, segments")]
    mean_bytes: Annotated[Known, Means("mean over the observed time, bytes")]
    last_bytes: Annotated[Known, Means("lag at the end, bytes; empty: not known")]


class LaggingTopic(NamedTuple):
    """Both lags of a tiered topic."""

    topic: Annotated[str, TOPIC]
    copy: Annotated[Lag, Means("upload lag")]
    delete: Annotated[Lag, Means("deletion lag")]
    unknown_us: Annotated[int | None, Means("the longer of copy_unknown_us and delete_unknown_us")]
    flags: Annotated[list[str], Means(
        "known_wrong: this Kafka version is known to report wrong values")]  # fmt: skip
    copies: Annotated[Bounds, Means(
        "segment uploads started", Rise("kafka.topic.remote_copy.requests", COPY_LAG))]  # fmt: skip
    copies_failed: Annotated[Bounds, Means(
        "segment uploads failed", Rise("kafka.topic.remote_copy.errors", COPY_LAG))]  # fmt: skip
    deletions: Annotated[Bounds, Means(
        "segment deletions started",
        Rise("kafka.topic.remote_delete.requests", COPY_LAG))]  # fmt: skip
    deletions_failed: Annotated[Bounds, Means(
        "segment deletions failed",
        Rise("kafka.topic.remote_delete.errors", COPY_LAG))]  # fmt: skip
    states_built: Annotated[Bounds, Means(
        "follower states that were to be built from remote storage",
        Rise("kafka.topic.remote_log_aux_state.requests", COPY_LAG))]  # fmt: skip
    states_failed: Annotated[Bounds, Means(
        "follower states that could not be built",
        Rise("kafka.topic.remote_log_aux_state.errors", COPY_LAG))]  # fmt: skip


class LaggingPartition(NamedTuple):
    """Records of a partition that are only on brokers' disks, and its remote segments.

    Only brokers with the MBeans of KIP-963's draft have ``upload_lag_max`` and ``delete_lag_max``.
    The fields after them require agents that read the metadata topic (section ``remote_log``).
    """

    topic: Annotated[str, TOPIC]
    partition: Annotated[int, PARTITION]
    records_max: Annotated[Known, Means(
        "maximum number of records that are not in remote storage, rounded up by up to 20 %",
        Max(_UNTIERED))]  # fmt: skip
    records_mean: Annotated[Known, Means("mean of it, also rounded up", Mean(_UNTIERED))]
    upload_lag_max: Annotated[Known, Means(
        "maximum number of records in closed segments that wait for upload (KIP-963 draft)",
        Max(_UPLOAD_LAG))]  # fmt: skip
    delete_lag_max: Annotated[Known, Means(
        "maximum number of records that wait for deletion (same draft)",
        Max(_DELETE_LAG))]  # fmt: skip
    waiting_records_max: Annotated[Known, Means(
        "maximum number of offsets in closed segments that wait for upload",
        Max(f"{_WAITING}.records"))]  # fmt: skip
    waiting_bytes_max: Annotated[Known, Means(
        "maximum size of closed segments that wait for upload, bytes",
        Max(f"{_WAITING}.bytes"))]  # fmt: skip
    held_back_bytes_max: Annotated[Known, Means(
        "maximum size of delayed uploads (KIP-1241), bytes",
        Max("kafka.partition.upload_held_back.bytes"))]  # fmt: skip
    upload_seconds_max: Annotated[Known, Means(
        "longest duration of a running upload, seconds",
        Max("kafka.partition.upload_running.seconds"))]  # fmt: skip
    deletable_records_max: Annotated[Known, Means(
        "maximum number of offsets in remote segments that wait for deletion",
        Max(f"{_DELETABLE}.records"))]  # fmt: skip
    deletable_bytes_max: Annotated[Known, Means(
        "maximum size of remote segments that wait for deletion, bytes",
        Max(f"{_DELETABLE}.bytes"))]  # fmt: skip
    deletions_failed_max: Annotated[Known, Means(
        "maximum number of remote segments whose deletion did not finish",
        Max("kafka.partition.delete_failed.segments"))]  # fmt: skip
    remote_bytes_max: Annotated[Known, Means(
        "maximum size in remote storage, bytes", Max(_REMOTE_BYTES))]  # fmt: skip
    abandoned_bytes_max: Annotated[Known, Means(
        "maximum size of unfinished uploads that no broker continues, bytes",
        Max("kafka.partition.remote_abandoned.bytes"))]  # fmt: skip


class OrphanedPartition(NamedTuple):
    """Remote segments of a partition whose topic no longer exists."""

    topic: Annotated[str, TOPIC]
    partition: Annotated[int, PARTITION]
    bytes_max: Annotated[Known, Means(
        "maximum size of the partition's remote segments, bytes",
        Max(f"{_ORPHANS}.bytes"))]  # fmt: skip
    segments_max: Annotated[Known, Means(
        "maximum number of the partition's remote segments",
        Max(f"{_ORPHANS}.segments"))]  # fmt: skip


class HeldTopic(NamedTuple):
    """A topic whose closed segments stay on brokers' disks on purpose (KIP-1241).

    Brokers include them in the upload lag, so an upload lag above 0 is not known.
    """

    topic: Annotated[str, TOPIC]
    copy_lag_ms: Annotated[int, Means(
        "remote.copy.lag.ms, milliseconds; -1: the local retention time")]  # fmt: skip
    copy_lag_bytes: Annotated[int, Means(
        "remote.copy.lag.bytes, bytes per partition; -1: the local retention size")]  # fmt: skip


class TierBroker(NamedTuple):
    """Uploads and deletions of a broker, and the time in which its copy quota delayed uploads."""

    source: Annotated[str, SOURCE]
    waits_bytes_mean: Annotated[Known, Means("mean upload lag over the observed time, bytes")]
    waits_bytes_max_of_a_topic: Annotated[Known, Means(
        "maximum upload lag of one topic, bytes", Max(COPY_LAG))]  # fmt: skip
    copies_failed: Annotated[Bounds, Means(
        "segment uploads failed", Rise("kafka.topic.remote_copy.errors", COPY_LAG))]  # fmt: skip
    deletions_failed: Annotated[Bounds, Means(
        "segment deletions failed",
        Rise("kafka.topic.remote_delete.errors", COPY_LAG))]  # fmt: skip
    held_back_us: Annotated[Bounds, Means(
        "time in which its copy quota delayed uploads, microseconds; empty: no MBean",
        HeldBack("kafka.broker.remote_copy.throttle_time.avg"))]  # fmt: skip
    held_back_ms_max: Annotated[Known, Means(
        "maximum delay of an upload, milliseconds",
        Max("kafka.broker.remote_copy.throttle_time.max"))]  # fmt: skip
    copy_rate_max: Annotated[Known, Means(
        "maximum upload rate, bytes per second",
        Max("kafka.broker.remote_copy.byte_rate"))]  # fmt: skip
    copy_idle_min: Annotated[Known, Means(
        "minimum idle share of the upload threads, 0 to 1",
        Min("kafka.broker.remote_log_manager.tasks_idle"))]  # fmt: skip
    unknown_us: Annotated[int | None, UNKNOWN]


class TierLag(NamedTuple):
    """The section on tiered-storage lag."""

    topics: Annotated[list[LaggingTopic], Means("tiered topics")]
    brokers: Annotated[list[TierBroker], Means("brokers")]
    partitions: Annotated[list[LaggingPartition], Means(
        "partitions with records that are not in remote storage, most records first")]  # fmt: skip
    partitions_omitted: Annotated[int, Means("number of further such partitions")]
    held_topics: Annotated[list[HeldTopic], Means(
        "topics with delayed uploads; a lag above 0 is not known")]  # fmt: skip
    orphans: Annotated[list[OrphanedPartition], Means(
        "partitions of deleted topics with segments in remote storage, "
        "most bytes first")]  # fmt: skip


def tier_lag(gold: Gold, statements: Sequence[Statement]) -> TierLag:
    """Return the lags of every topic that is tiered, or that had a lag."""
    rows, last, means = gold.raised(tables.TOPICS), last_lags(gold), _means(gold)
    counts = with_bounds(gold, tables.TOPICS)
    unknown = {lag: unknown_of(statements, metric) for lag, metric in LAGGING.items()}
    topics = []
    for subject in gold.subjects:
        topic, metrics = str(subject.topic), rows[subject.topic]
        lagged = any(metrics[metric].get("series_affected_high_us") for metric in LAGGING.values())
        if subject.kind != "topic" or not (lagged or subject.attributes.get(_IS_TIERED) == 1):
            continue
        copy, delete = (
            Lag(
                duration(metrics[LAGGING[metric]], "affected"),
                unknown[metric].get(subject.key),
                metrics[metric].get("max_total"),
                metrics[metric.replace("bytes", "segments")].get("max_total"),
                means.get((metric, topic)),
                last.get((metric, topic)),
            )
            for metric in LAGGING
        )
        times = [lag.unknown_us for lag in (copy, delete) if lag.unknown_us is not None]
        longer = max(times) if len(times) == len(LAGGING) else None
        known_wrong = any(metrics[metric].get("known_wrong") for metric in LAGGING)
        flags = [tables.FLAG_KNOWN_WRONG] if known_wrong else []
        events = figures(LaggingTopic, counts[subject.topic])
        topics.append(LaggingTopic(topic, copy, delete, longer, flags, **events))
    partitions = _lagging_partitions(gold)
    shown = partitions[:_MOST_PARTITIONS]
    omitted = len(partitions) - len(shown)
    more = _held_topics(gold), _orphaned_partitions(gold)
    return TierLag(topics, _brokers(gold), shown, omitted, *more)


def _held_topics(gold: Gold) -> list[HeldTopic]:
    """Return the tiered topics with both settings other than 0, in order of their names."""
    tiered = [one for one in gold.subjects if one.attributes.get(_IS_TIERED) == 1]
    held = [
        HeldTopic(str(one.topic), time, size)
        for one in tiered
        if (time := attribute(one, _HELD_TIME)) and (size := attribute(one, _HELD_SIZE))
    ]
    return sorted(held)


def _brokers(gold: Gold) -> list[TierBroker]:
    """Return every broker that reported a topic's upload lag, and brokers never read."""
    sums, away = with_bounds(gold, tables.SOURCES), unread_times(gold, COPY_LAG)
    read_us = {
        row["source"]: row["outcome_us"]
        for row in gold.sums(tables.COVERAGE)
        if row["family"] in families(COPY_LAG) and row["outcome"] == "ok"
    }
    means = {
        source: per_second({**rows[COPY_LAG], "us": read_us.get(source)}, "us")
        for source, rows in sums.items()
        if COPY_LAG in rows
    }
    return [
        TierBroker(
            source,
            means.get(source),
            **figures(TierBroker, sums[source] if source in means else {}),
            unknown_us=unknown_us(away, source),
        )
        for source in listed(means, away)
    ]


def _lagging_partitions(gold: Gold) -> list[LaggingPartition]:
    """Return every partition with records that are not in remote storage, most records first."""
    waiting = (_UNTIERED, f"{_WAITING}.records", _UPLOAD_LAG, f"{_DELETABLE}.records", _DELETE_LAG)
    rows = gold.by_subject(tables.PARTITIONS, (*waiting, _REMOTE_BYTES, *_OTHERS))
    found = {
        LaggingPartition(*partition, **figures(LaggingPartition, metrics)): max(
            (metrics[one].get("value_max") or 0 for one in waiting if one in metrics), default=0
        )
        for partition, metrics in sorted(rows.items())
        if metrics.keys() - {_REMOTE_BYTES}  # every tiered partition has it
    }
    return sorted(found, key=lambda one: -found[one])


def _orphaned_partitions(gold: Gold) -> list[OrphanedPartition]:
    """Return partitions of deleted topics with remote segments, most bytes first."""
    rows = gold.by_subject(tables.PARTITIONS, (f"{_ORPHANS}.bytes", f"{_ORPHANS}.segments"))
    found = [
        OrphanedPartition(*partition, **figures(OrphanedPartition, metrics))
        for partition, metrics in sorted(rows.items())
    ]
    return sorted(found, key=lambda one: -(one.bytes_max or 0))[:_MOST_PARTITIONS]


def _means(gold: Gold) -> dict[tuple[str, str], float | None]:
    """Return the mean lag while any broker reported it, bytes, per metric and topic."""
    # The same as ``seconds_mean``, window by window.
    seconds = (
        "greatest(CAST(r.series_seen_us AS DOUBLE) / nullif(r.series, 0) / 1e6, "
        "CASE WHEN r.max_total > 0 THEN r.value_seconds / r.max_total END)"
    )
    total, time = (
        f"CAST(sum(CAST({what} AS {EXACT})) AS DOUBLE)" for what in ("r.value_seconds", seconds)
    )
    rows = gold.ask(
        f"SELECT r.metric, r.topic, {total} / nullif({time}, 0) AS mean "
        f"FROM {{rows}} r WHERE {is_one_of('r.metric', LAGGING)} "
        "GROUP BY r.metric, r.topic",
        rows=gold.finest(tables.TOPICS),
    )
    return {(row["metric"], row["topic"]): row["mean"] for row in rows}


def last_lags(gold: Gold) -> dict[tuple[str, str], float | None]:
    """Return the lag at the end of the period per metric and topic, bytes, summed over brokers.

    None: a broker that may still lead a partition was unread. A broker that was still read, but
    stopped reporting a topic, no longer leads it.
    """
    start = gold.period.end - 2 * dt.timedelta(seconds=gold.window_seconds)
    last = gold.within(Period(max(gold.period.start, start), gold.period.end))
    # The last report of each broker, the newest report, and the last reading of each broker.
    lags = (
        "SELECT r.metric, r.topic, r.source, r.ended_at, r.value_last, row_number() OVER "
        "(PARTITION BY r.metric, r.topic, r.source ORDER BY r.ended_at DESC, r.value_last) "
        "AS place, "
        "max(r.ended_at) OVER (PARTITION BY r.metric, r.topic) AS newest "
        f"FROM {{lags}} r WHERE {is_one_of('r.metric', LAGGING)}"
    )
    readings = (
        "SELECT r.source, max(r.ended_at) AS until FROM {readings} r "
        f"WHERE {is_one_of('r.family', sorted(families(COPY_LAG)))} AND r.outcome = 'ok' "
        "GROUP BY r.source"
    )
    late = f"l.ended_at >= l.newest - {_STILL_US}"
    rows = last.ask(
        f"SELECT l.metric, l.topic, CASE WHEN min(CASE WHEN {late} THEN 1 ELSE 0 END) = 1 "
        f"THEN CAST(sum(CAST(l.value_last AS {EXACT})) AS DOUBLE) END AS lag "
        f"FROM ({lags}) l LEFT JOIN ({readings}) u ON u.source = l.source "
        f"WHERE l.place = 1 AND ({late} OR coalesce(u.until, 0) <= l.ended_at) "
        "GROUP BY l.metric, l.topic",
        lags=last.hours(tables.LAGS),
        readings=last.whole(tables.READINGS),
    )
    return {(row["metric"], row["topic"]): row["lag"] for row in rows}


QUESTION: Final = Question(
    name="tier-lag",
    section="tiered",
    read=COPY_LAG,
    gold=("topics", "lags"),
    judged=(COPY_LAG, "kafka.topic.remote_delete_lag.segments"),
    noun="tiered topic",
    names=("topic",),
    subjects=Rows(LaggingTopic, "tier_lag.topics", ("copy.lagging_us",)),
    not_applicable="no topic has remote storage enabled",
    fact="tier_lag.topics",
    bad=(
        Rows(LaggingTopic, "tier_lag.topics", (
            "copy.lagging_us", "copy.lagging_high_us", "delete.lagging_us",
            "delete.lagging_high_us", "copies_failed", "deletions_failed",
        )),
        Rows(TierBroker, "tier_lag.brokers", ("held_back_us",)),
        Rows(OrphanedPartition, "tier_lag.orphans", ("bytes_max",)),
    ),
    shows=(
        LaggingTopic, LaggingPartition, TierBroker, OrphanedPartition,
        "kafka.partition.upload_lag.*", "kafka.partition.upload_held_back.*",
        "kafka.partition.delete_lag.*", "kafka.partition.remote.*",
        "kafka.topic.remote_copy_held_back.*",
        "kafka.topic.remote_copy_lag.*", "kafka.topic.remote_delete_lag.*",
        "kafka.partition.last_stable_offset_lag", # of events with a hanging transaction
        "kafka.broker.partitions_with_late_transactions",
    ),
)  # fmt: skip
