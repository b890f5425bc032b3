"""What brokers and controllers say of themselves: a row of each for several sections.

A counter whose bean appears with its first event is 0 without one, as far as its family was read.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import LEADERLESS, UNDER_MIN_ISR, families
from lakehouse.engines.gold_reader import Row
from lakehouse.report.facts.gold import COPY_LAG, Gold, Known, duration, figures, per_second
from lakehouse.report.facts.saved import Bounds

COUNTED_BY_BROKER: Final = "kafka.broker.under_min_isr_partitions"
_ACTIVE: Final = "kafka.controller.active"
_REFUSED: Final = "kafka.broker.produce_errors.not_enough_replicas"

_SENT: Final = "replication_sent_bytes"
"""Without a throttle Kafka counts here what an answer to a follower has beside its partitions."""

_READS: Final = "kafka.broker.remote_log_reader.fetches"


class IsrBroker(NamedTuple):
    """A broker's own counts, sums over the partitions that it leads, and the writes it refused."""

    source: str
    under_min_isr_partition_seconds: Annotated[Known, COUNTED_BY_BROKER, "value_seconds"]
    sum_of_partitions_seconds: Annotated[Known, UNDER_MIN_ISR, "value_seconds"]
    leaderless_partition_seconds: Annotated[Known, LEADERLESS, "value_seconds"]
    at_min_isr_partition_seconds: Annotated[
        Known, "kafka.broker.at_min_isr_partitions", "value_seconds"
    ]
    leads_mean: Annotated[Known, "kafka.broker.led_partitions", "mean"]
    isr_shrinks: Annotated[Known, "kafka.broker.isr_shrinks", "increase"]
    isr_expands: Annotated[Known, "kafka.broker.isr_expands", "increase"]
    writes_refused: Known


class Controller(NamedTuple):
    """A controller: for how long it was the active one, and what it counted of the cluster."""

    source: str
    active_us: Annotated[Bounds, _ACTIVE, "positive"]
    offline_partition_seconds: Annotated[
        Known, "kafka.controller.offline_partitions", "value_seconds"
    ]
    fenced_brokers_max: Annotated[Known, "kafka.controller.fenced_brokers", "max"]
    active_brokers_min: Annotated[Known, "kafka.controller.active_brokers", "min"]


class QuotaBroker(NamedTuple):
    """A broker at which quotas held answers or replication back.

    Attributes:
        produce_waiting_max: Most answers that waited at one instant, of each kind of quota.
        exempt_percent_mean: Time on threads that no quota counts, in percent of one thread.
        replication_sent_bytes: Throttled replication that left it, and a few bytes of every answer
            to a follower; the next two: that reached it, and that moved between its disks.
    """

    source: str
    produce_waiting_max: Annotated[Known, "kafka.broker.produce.queue_size", "max"]
    fetch_waiting_max: Annotated[Known, "kafka.broker.fetch.queue_size", "max"]
    request_waiting_max: Annotated[Known, "kafka.broker.request.queue_size", "max"]
    controller_mutation_waiting_max: Annotated[
        Known, "kafka.broker.controller_mutation.queue_size", "max"
    ]
    exempt_percent_mean: Known
    replication_sent_bytes: Annotated[
        Known, "kafka.broker.leader_replication.byte_rate", "value_seconds"
    ]
    replication_received_bytes: Annotated[
        Known, "kafka.broker.follower_replication.byte_rate", "value_seconds"
    ]
    replication_moved_bytes: Annotated[
        Known, "kafka.broker.alter_log_dirs_replication.byte_rate", "value_seconds"
    ]


class TierBroker(NamedTuple):
    """Uploads and deletions of a broker, and for how long its own copy quota held uploads back."""

    source: str
    waits_bytes_mean: Known
    waits_bytes_max_of_a_topic: Annotated[Known, COPY_LAG, "max"]
    copies_failed: Known
    deletions_failed: Known
    held_back_us: Bounds
    held_back_ms_max: Annotated[Known, "kafka.broker.remote_copy.throttle_time.max", "max"]
    copy_rate_max: Annotated[Known, "kafka.broker.remote_copy.byte_rate", "max"]
    copy_idle_min: Annotated[Known, "kafka.broker.remote_log_manager.tasks_idle", "min"]


class ReadingBroker(NamedTuple):
    """Reads of a broker from the remote tier, and for how long its fetch quota held them back."""

    source: str
    reads: Annotated[Known, _READS, "increase"]
    read_ms_mean: Annotated[Known, "kafka.broker.remote_log_reader.fetch_time.mean", "mean_above_0"]
    reads_expired: Known
    look_ups_expired: Known
    waiting_max: Annotated[Known, "kafka.broker.remote_log_reader.task_queue_size", "max"]
    idle_min: Annotated[Known, "kafka.broker.remote_log_reader.idle", "min"]
    held_back_us: Bounds
    held_back_ms_max: Annotated[Known, "kafka.broker.remote_fetch.throttle_time.max", "max"]
    fetch_rate_max: Annotated[Known, "kafka.broker.remote_fetch.byte_rate", "max"]


class Plugin(NamedTuple):
    """What the Aiven plugin counts of a broker: its store, and its cache of indexes."""

    source: str
    uploads: Annotated[Known, "kafka.rsm.upload.requests", "increase"]
    uploaded_bytes: Annotated[Known, "kafka.rsm.upload.bytes", "increase"]
    copy_ms_mean: Annotated[Known, "kafka.rsm.copy_time.avg", "mean_above_0"]
    copy_ms_max: Annotated[Known, "kafka.rsm.copy_time.max", "max"]
    requested_bytes: Annotated[Known, "kafka.rsm.fetch.requested_bytes", "increase"]
    deletions: Annotated[Known, "kafka.rsm.delete.requests", "increase"]
    deleted_bytes: Annotated[Known, "kafka.rsm.delete.bytes", "increase"]
    deletions_failed: Annotated[Known, "kafka.rsm.delete.errors", "increase"]
    delete_ms_mean: Annotated[Known, "kafka.rsm.delete_time.avg", "mean_above_0"]
    delete_ms_max: Annotated[Known, "kafka.rsm.delete_time.max", "max"]
    index_loads: Annotated[Known, "kafka.rsm.index_cache.loads", "increase"]
    index_loads_failed: Annotated[Known, "kafka.rsm.index_cache.load_failures", "increase"]
    index_evictions: Annotated[Known, "kafka.rsm.index_cache.evictions", "increase"]
    index_entries_max: Annotated[Known, "kafka.rsm.index_cache.size", "max"]


def of_isr(gold: Gold) -> list[IsrBroker]:
    """Every broker that counted partitions, or whose partitions were reported."""
    refused = (_REFUSED, f"{_REFUSED}_after_append")
    return [
        IsrBroker(
            source,
            **figures(IsrBroker, rows),
            writes_refused=counted(rows, COUNTED_BY_BROKER, *refused),
        )
        for source, rows in _sources(gold)
        if COUNTED_BY_BROKER in rows or UNDER_MIN_ISR in rows
    ]


def controllers(gold: Gold) -> list[Controller]:
    """Every controller that was read."""
    return [
        Controller(source, **figures(Controller, rows))
        for source, rows in _sources(gold)
        if _ACTIVE in rows
    ]


def of_quotas(gold: Gold) -> list[QuotaBroker]:
    """The brokers and controllers at which something waited, or replication was throttled."""
    found = []
    for source, rows in _sources(gold):
        own = figures(QuotaBroker, rows)
        if any(figure for name, figure in own.items() if name != _SENT):
            exempt = per_second(rows["kafka.broker.request.exempt_time"], "observed_us")
            found.append(QuotaBroker(source, **own, exempt_percent_mean=exempt))
    return found


def of_tiers(gold: Gold) -> list[TierBroker]:
    """Every broker of which a topic's copy lag was reported."""
    read_us = _read_us(gold, COPY_LAG)
    return [
        TierBroker(
            source,
            waits_bytes_mean=per_second({**rows[COPY_LAG], "us": read_us.get(source)}, "us"),
            copies_failed=counted(rows, COPY_LAG, "kafka.topic.remote_copy.errors"),
            deletions_failed=counted(rows, COPY_LAG, "kafka.topic.remote_delete.errors"),
            held_back_us=_held_back(rows["kafka.broker.remote_copy.throttle_time.avg"]),
            **figures(TierBroker, rows),
        )
        for source, rows in _sources(gold)
        if COPY_LAG in rows
    ]


def of_reads(gold: Gold) -> list[ReadingBroker]:
    """Every broker that counts its remote reads."""
    return [
        ReadingBroker(
            source,
            reads_expired=counted(rows, _READS, "kafka.broker.remote_fetch.expired"),
            look_ups_expired=counted(rows, _READS, "kafka.broker.remote_list_offsets.expired"),
            held_back_us=_held_back(rows["kafka.broker.remote_fetch.throttle_time.avg"]),
            **figures(ReadingBroker, rows),
        )
        for source, rows in _sources(gold)
        if _READS in rows
    ]


def plugins(gold: Gold) -> list[Plugin]:
    """Every broker with a bean of the Aiven plugin."""
    found = (Plugin(source, **figures(Plugin, rows)) for source, rows in _sources(gold))
    return [one for one in found if any(figure is not None for figure in one[1:])]


def counted(rows: Mapping[str, Row], beside: str, *metrics: str) -> float | None:
    """By how much counters rose together; None: it is not known.

    Args:
        rows: Sums of gold of a subject by metric.
        beside: A metric of the same scrapes: where it was read, a counter without a row is 0.
        metrics: The counters.
    """
    known = [rows[name]["increase"] for name in metrics if rows.get(name)]
    if None in known or not (known or rows.get(beside)):
        return None
    return math.fsum(known)


def _held_back(row: Row) -> Bounds:
    """How long a broker's quota of tiered storage held it back, by the bean of its waits.

    Without the bean it never did, or this Kafka has none. Versions that lose the bean after an hour
    without a wait (KAFKA-19484) have no upper bound.
    """
    held = duration(row, "positive")
    return held._replace(high=None) if row.get("known_wrong") else held


def _read_us(gold: Gold, metric: str) -> dict[str, int]:
    """How long the family of a metric was read, by source."""
    return {
        row["source"]: row["duration_us"]
        for row in gold.sums(tables.COVERAGE)
        if row["family"] in families(metric) and row["outcome"] == "ok"
    }


def _sources(gold: Gold) -> Iterator[tuple[str, Any]]:
    """Sums of each source by metric, in the order of their names."""
    yield from sorted(gold.by_subject(tables.BROKERS).items())
