"""What brokers and controllers say of themselves: a row of each for several sections.

A counter whose bean appears with its first event is 0 without one, as far as its family was read.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.metrics import LEADERLESS, UNDER_MIN_ISR, families
from lakehouse.engines.gold_reader import Row
from lakehouse.report.facts.gold import COPY_LAG, Gold, duration, per_second
from lakehouse.report.facts.saved import Bounds

COUNTED_BY_BROKER: Final = "kafka.broker.under_min_isr_partitions"
_REFUSED: Final = "kafka.broker.produce_errors.not_enough_replicas"
_MEANS: Final = {"mean": "observed_us", "mean_above_0": "positive_us"}

_Figures = Mapping[str, tuple[str, str]]
"""Metric and column of gold/brokers, or one of ``_MEANS``, by the fields of a record."""

_ISR: Final[_Figures] = {
    "under_min_isr_partition_seconds": (COUNTED_BY_BROKER, "value_seconds"),
    "sum_of_partitions_seconds": (UNDER_MIN_ISR, "value_seconds"),
    "leaderless_partition_seconds": (LEADERLESS, "value_seconds"),
    "at_min_isr_partition_seconds": ("kafka.broker.at_min_isr_partitions", "value_seconds"),
    "leads_mean": ("kafka.broker.led_partitions", "mean"),
    "isr_shrinks": ("kafka.broker.isr_shrinks", "increase"),
    "isr_expands": ("kafka.broker.isr_expands", "increase"),
}
_CONTROLLER: Final[_Figures] = {
    "offline_partition_seconds": ("kafka.controller.offline_partitions", "value_seconds"),
    "fenced_brokers_max": ("kafka.controller.fenced_brokers", "max"),
    "active_brokers_min": ("kafka.controller.active_brokers", "min"),
}
_QUOTAS: Final[_Figures] = {
    "produce_waiting_max": ("kafka.broker.produce.queue_size", "max"),
    "fetch_waiting_max": ("kafka.broker.fetch.queue_size", "max"),
    "request_waiting_max": ("kafka.broker.request.queue_size", "max"),
    "controller_mutation_waiting_max": ("kafka.broker.controller_mutation.queue_size", "max"),
    "replication_sent_bytes": ("kafka.broker.leader_replication.byte_rate", "value_seconds"),
    "replication_received_bytes": ("kafka.broker.follower_replication.byte_rate", "value_seconds"),
    "replication_moved_bytes": (
        "kafka.broker.alter_log_dirs_replication.byte_rate",
        "value_seconds",
    ),
}
_TIERS: Final[_Figures] = {
    "waits_bytes_max_of_a_topic": (COPY_LAG, "max"),
    "held_back_ms_max": ("kafka.broker.remote_copy.throttle_time.max", "max"),
    "copy_rate_max": ("kafka.broker.remote_copy.byte_rate", "max"),
    "copy_idle_min": ("kafka.broker.remote_log_manager.tasks_idle", "min"),
}
_SENT: Final = "replication_sent_bytes"
"""Without a throttle Kafka counts here what an answer to a follower has beside its partitions."""

_READS: Final = "kafka.broker.remote_log_reader.fetches"
_READER: Final[_Figures] = {
    "reads": (_READS, "increase"),
    "read_ms_mean": ("kafka.broker.remote_log_reader.fetch_time.mean", "mean_above_0"),
    "waiting_max": ("kafka.broker.remote_log_reader.task_queue_size", "max"),
    "idle_min": ("kafka.broker.remote_log_reader.idle", "min"),
    "held_back_ms_max": ("kafka.broker.remote_fetch.throttle_time.max", "max"),
    "fetch_rate_max": ("kafka.broker.remote_fetch.byte_rate", "max"),
}
_PLUGIN: Final[_Figures] = {
    "uploads": ("kafka.rsm.upload.requests", "increase"),
    "uploaded_bytes": ("kafka.rsm.upload.bytes", "increase"),
    "copy_ms_mean": ("kafka.rsm.copy_time.avg", "mean_above_0"),
    "copy_ms_max": ("kafka.rsm.copy_time.max", "max"),
    "requested_bytes": ("kafka.rsm.fetch.requested_bytes", "increase"),
    "deletions": ("kafka.rsm.delete.requests", "increase"),
    "deleted_bytes": ("kafka.rsm.delete.bytes", "increase"),
    "deletions_failed": ("kafka.rsm.delete.errors", "increase"),
    "delete_ms_mean": ("kafka.rsm.delete_time.avg", "mean_above_0"),
    "delete_ms_max": ("kafka.rsm.delete_time.max", "max"),
    "index_loads": ("kafka.rsm.index_cache.loads", "increase"),
    "index_loads_failed": ("kafka.rsm.index_cache.load_failures", "increase"),
    "index_evictions": ("kafka.rsm.index_cache.evictions", "increase"),
    "index_entries_max": ("kafka.rsm.index_cache.size", "max"),
}


class IsrBroker(NamedTuple):
    """A broker's own counts, sums over the partitions that it leads, and the writes it refused."""

    source: str
    under_min_isr_partition_seconds: float | None
    sum_of_partitions_seconds: float | None
    leaderless_partition_seconds: float | None
    at_min_isr_partition_seconds: float | None
    leads_mean: float | None
    isr_shrinks: float | None
    isr_expands: float | None
    writes_refused: float | None


class Controller(NamedTuple):
    """A controller: for how long it was the active one, and what it counted of the cluster."""

    source: str
    active_us: Bounds
    offline_partition_seconds: float | None
    fenced_brokers_max: float | None
    active_brokers_min: float | None


class QuotaBroker(NamedTuple):
    """A broker at which quotas held answers or replication back.

    Attributes:
        produce_waiting_max: Most answers that waited at one instant, of each kind of quota.
        exempt_percent_mean: Time on threads that no quota counts, in percent of one thread.
        replication_sent_bytes: Throttled replication that left it, and a few bytes of every answer
            to a follower; the next two: that reached it, and that moved between its disks.
    """

    source: str
    produce_waiting_max: float | None
    fetch_waiting_max: float | None
    request_waiting_max: float | None
    controller_mutation_waiting_max: float | None
    exempt_percent_mean: float | None
    replication_sent_bytes: float | None
    replication_received_bytes: float | None
    replication_moved_bytes: float | None


class TierBroker(NamedTuple):
    """Uploads and deletions of a broker, and for how long its own copy quota held uploads back."""

    source: str
    waits_bytes_mean: float | None
    waits_bytes_max_of_a_topic: float | None
    copies_failed: float | None
    deletions_failed: float | None
    held_back_us: Bounds
    held_back_ms_max: float | None
    copy_rate_max: float | None
    copy_idle_min: float | None


class ReadingBroker(NamedTuple):
    """Reads of a broker from the remote tier, and for how long its fetch quota held them back."""

    source: str
    reads: float | None
    read_ms_mean: float | None
    reads_expired: float | None
    look_ups_expired: float | None
    waiting_max: float | None
    idle_min: float | None
    held_back_us: Bounds
    held_back_ms_max: float | None
    fetch_rate_max: float | None


class Plugin(NamedTuple):
    """What the Aiven plugin counts of a broker: its store, and its cache of indexes."""

    source: str
    uploads: float | None
    uploaded_bytes: float | None
    copy_ms_mean: float | None
    copy_ms_max: float | None
    requested_bytes: float | None
    deletions: float | None
    deleted_bytes: float | None
    deletions_failed: float | None
    delete_ms_mean: float | None
    delete_ms_max: float | None
    index_loads: float | None
    index_loads_failed: float | None
    index_evictions: float | None
    index_entries_max: float | None


def of_isr(gold: Gold) -> list[IsrBroker]:
    """Every broker that counted partitions, or whose partitions were reported."""
    refused = (_REFUSED, f"{_REFUSED}_after_append")
    return [
        IsrBroker(
            source,
            **_figures(rows, _ISR),
            writes_refused=counted(rows, COUNTED_BY_BROKER, *refused),
        )
        for source, rows in _sources(gold)
        if COUNTED_BY_BROKER in rows or UNDER_MIN_ISR in rows
    ]


def controllers(gold: Gold) -> list[Controller]:
    """Every controller that was read."""
    active = "kafka.controller.active"
    return [
        Controller(source, duration(rows[active], "positive"), **_figures(rows, _CONTROLLER))
        for source, rows in _sources(gold)
        if active in rows
    ]


def of_quotas(gold: Gold) -> list[QuotaBroker]:
    """The brokers and controllers at which something waited, or replication was throttled."""
    found = []
    for source, rows in _sources(gold):
        figures = _figures(rows, _QUOTAS)
        if any(figure for name, figure in figures.items() if name != _SENT):
            exempt = per_second(rows["kafka.broker.request.exempt_time"], "observed_us")
            found.append(QuotaBroker(source, **figures, exempt_percent_mean=exempt))
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
            **_figures(rows, _TIERS),
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
            **_figures(rows, _READER),
        )
        for source, rows in _sources(gold)
        if _READS in rows
    ]


def plugins(gold: Gold) -> list[Plugin]:
    """Every broker with a bean of the Aiven plugin."""
    found = (Plugin(source, **_figures(rows, _PLUGIN)) for source, rows in _sources(gold))
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


def _figures(rows: Mapping[str, Row], chosen: _Figures) -> dict[str, Any]:
    return {
        field: per_second(rows.get(metric, {}), _MEANS[column])
        if column in _MEANS
        else rows.get(metric, {}).get(column)
        for field, (metric, column) in chosen.items()
    }


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
