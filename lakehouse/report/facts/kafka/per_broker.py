"""What brokers and controllers say of themselves: a row of each for several sections.

A counter whose bean appears with its first event is 0 without one, as far as its family was read.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from lakehouse import tables
from lakehouse.core.metrics import COPY_LAG, LEADERLESS, UNDER_MIN_ISR, families
from lakehouse.report.facts.fields import Bounds, Known, figures, per_second
from lakehouse.report.facts.gold import Gold

COUNTED_BY_BROKER: Final = "kafka.broker.under_min_isr_partitions"
ACTIVE: Final = "kafka.controller.active"
_REFUSED: Final = "kafka.broker.produce_errors.not_enough_replicas"
_REFUSED_LATER: Final = f"{_REFUSED}_after_append"

READS: Final = "kafka.broker.remote_log_reader.fetches"
_LOOK_UPS_EXPIRED: Final = "kafka.broker.remote_list_offsets.expired"

R = TypeVar("R")


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
    writes_refused: Annotated[Known, _REFUSED, "counted", COUNTED_BY_BROKER, _REFUSED_LATER]


class Controller(NamedTuple):
    """A controller: for how long it was the active one, and what it counted of the cluster."""

    source: str
    active_us: Annotated[Bounds, ACTIVE, "positive"]
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
    exempt_percent_mean: Annotated[Known, "kafka.broker.request.exempt_time", "mean"]
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
    copies_failed: Annotated[Known, "kafka.topic.remote_copy.errors", "counted", COPY_LAG]
    deletions_failed: Annotated[Known, "kafka.topic.remote_delete.errors", "counted", COPY_LAG]
    held_back_us: Annotated[Bounds, "kafka.broker.remote_copy.throttle_time.avg", "held_back"]
    held_back_ms_max: Annotated[Known, "kafka.broker.remote_copy.throttle_time.max", "max"]
    copy_rate_max: Annotated[Known, "kafka.broker.remote_copy.byte_rate", "max"]
    copy_idle_min: Annotated[Known, "kafka.broker.remote_log_manager.tasks_idle", "min"]


class ReadingBroker(NamedTuple):
    """Reads of a broker from the remote tier, and for how long its fetch quota held them back."""

    source: str
    reads: Annotated[Known, READS, "increase"]
    read_ms_mean: Annotated[Known, "kafka.broker.remote_log_reader.fetch_time.mean", "mean_above_0"]
    reads_expired: Annotated[Known, "kafka.broker.remote_fetch.expired", "counted", READS]
    look_ups_expired: Annotated[Known, _LOOK_UPS_EXPIRED, "counted", READS]
    waiting_max: Annotated[Known, "kafka.broker.remote_log_reader.task_queue_size", "max"]
    idle_min: Annotated[Known, "kafka.broker.remote_log_reader.idle", "min"]
    held_back_us: Annotated[Bounds, "kafka.broker.remote_fetch.throttle_time.avg", "held_back"]
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


def of_quotas(gold: Gold) -> list[QuotaBroker]:
    """The brokers and controllers at which something waited, or replication was throttled."""
    found = (QuotaBroker(source, **figures(QuotaBroker, rows)) for source, rows in _sources(gold))
    # Without a throttle Kafka counts as sent what an answer to a follower has beside partitions.
    beside = ("source", "exempt_percent_mean", "replication_sent_bytes")
    return [
        one for one in found if any(it for name, it in one._asdict().items() if name not in beside)
    ]


def of_tiers(gold: Gold) -> list[TierBroker]:
    """Every broker of which a topic's copy lag was reported."""
    read_us = {
        row["source"]: row["duration_us"]
        for row in gold.sums(tables.COVERAGE)
        if row["family"] in families(COPY_LAG) and row["outcome"] == "ok"
    }
    return [
        TierBroker(
            source,
            per_second({**rows[COPY_LAG], "us": read_us.get(source)}, "us"),
            **figures(TierBroker, rows),
        )
        for source, rows in _sources(gold)
        if COPY_LAG in rows
    ]


def plugins(gold: Gold) -> list[Plugin]:
    """Every broker with a bean of the Aiven plugin."""
    found = (Plugin(source, **figures(Plugin, rows)) for source, rows in _sources(gold))
    return [one for one in found if any(figure is not None for figure in one[1:])]


def with_any(gold: Gold, record: Callable[..., R], *metrics: str) -> list[R]:
    """A record of every source that has one of some metrics."""
    return [
        record(source, **figures(record, rows))
        for source, rows in _sources(gold)
        if any(name in rows for name in metrics)
    ]


def _sources(gold: Gold) -> Iterator[tuple[str, Any]]:
    """Sums of each source by metric, in the order of their names."""
    yield from sorted(gold.by_subject(tables.BROKERS).items())
