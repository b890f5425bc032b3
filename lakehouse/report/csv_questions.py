"""The CSV tables of the five questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.report import incidents
from lakehouse.report.csv_columns import (
    CLIENT,
    GROUP,
    OWNED,
    PARTITION,
    SOURCE,
    TOPIC,
    UNKNOWN,
    USER,
    Column,
    Table,
    bounded,
    section,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakehouse.report.csv_columns import Row


def _lag(way: str, what: str) -> tuple[Column, ...]:
    def column(key: str, meaning: str) -> Column:
        return Column(f"{way}_{key}", meaning, lambda row: (row.get(way) or {}).get(key))

    return (
        column("lagging_us", f"microseconds in which something waited for {what}"),
        column("lagging_low_us", f"what {way}_lagging_us is at least"),
        column("lagging_high_us", f"what {way}_lagging_us is at most"),
        column("unknown_us", f"microseconds in which nobody saw all that may wait for {what}"),
        column("max_bytes", f"most bytes that waited for {what}"),
        column("max_segments", f"most segments that waited for {what}"),
        column("mean_bytes", f"bytes that waited for {what}, on the mean over the time seen"),
        column("last_bytes", f"bytes that waited for {what} at the end; empty: not known"),
    )


def _joined(key: str) -> Callable[[Row], str]:
    return lambda row: " ".join(str(one) for one in row.get(key) or ())


TABLES: Final = (
    Table(
        "min_isr_topics", "topic", section("min_isr", "topics"),
        (
            TOPIC,
            Column("partitions", "how many partitions it has"),
            *bounded("unavailable_any", "in which a partition was under min ISR or leaderless"),
            *bounded("any", "in which a partition was under min ISR"),
            *bounded("under", "under min ISR, summed over partitions"),
            *bounded("leaderless", "without a leader, summed over partitions"),
            Column("at_min_us", "microseconds at min ISR, summed over partitions"),
            Column("max_concurrent", "most partitions under min ISR or leaderless at one instant"),
            UNKNOWN,
            Column("unseen_us", "microseconds in which not all of it was seen, well or not"),
            Column("partitions_unknown_us", "microseconds unseen, summed over partitions"),
            *OWNED,
        ),
    ),
    Table(
        "min_isr_partitions", "partition that was under min ISR or without a leader",
        section("min_isr", "partitions"),
        (
            TOPIC, PARTITION,
            *bounded("under", "under min ISR"),
            *bounded("leaderless", "without a leader"),
            Column("unknown_us", "microseconds that nobody saw of it, at most"),
            *OWNED,
        ),
    ),
    Table(
        "incidents", "incident of a partition", incidents.incidents,
        (
            TOPIC, PARTITION,
            Column("kind", "under_min_isr or leaderless"),
            Column("start", "first instant at which it was seen, UTC"),
            Column("end", "last instant that is vouched for, UTC"),
            Column("lead_us", "by how much earlier it may have begun, microseconds"),
            Column("tail_us", "by how much earlier it may have ended, microseconds"),
            Column("sources", "who told of it, with spaces between", _joined("sources")),
            *OWNED,
        ),
    ),
    Table(
        "min_isr_brokers", "broker", section("min_isr", "brokers"),
        (
            SOURCE,
            Column("under_min_isr_partition_seconds", "by the broker's own count"),
            Column("sum_of_partitions_seconds", "the same, summed over its partitions"),
            Column("leaderless_partition_seconds", "partition-seconds without a leader it told of"),
        ),
    ),
    Table(
        "throttling_clients", "client and kind of quota", section("throttling", "clients"),
        (
            USER, CLIENT,
            Column("kind", "produce, fetch, request or controller_mutation"),
            *bounded("throttled", "in which a broker throttled it"),
            Column("throttle_ms_mean", "mean wait while throttled, milliseconds"),
            Column("throttle_ms_max", "longest wait, milliseconds"),
            Column("rate_mean", "mean rate while above zero, in rate_unit"),
            Column("rate_max", "greatest total of the brokers, in rate_unit"),
            Column("rate_unit", "unit of rates and quota (UCUM)"),
            Column("quota", "the quota in force for it, of each broker, in rate_unit"),
            UNKNOWN,
            *OWNED,
        ),
    ),
    Table(
        "tier_lag_topics", "tiered topic", section("tier_lag", "topics"),
        (
            TOPIC,
            *_lag("copy", "upload"),
            *_lag("delete", "deletion"),
            Column("unknown_us", "the longer of copy_unknown_us and delete_unknown_us"),
            Column("flags", "known_wrong: this Kafka version reports it wrongly", _joined("flags")),
            *OWNED,
        ),
    ),
    Table(
        "lost_before_read", "group and partition", section("lost_before_read", "groups"),
        (
            GROUP, TOPIC, PARTITION,
            Column("offsets_low", "offsets deleted before the group had read them, at least"),
            Column("offsets_high", "the same, at most"),
            UNKNOWN,
            *OWNED,
        ),
    ),
    Table(
        "remote_reads_topics", "topic that was read from the remote store",
        section("remote_reads", "topics"),
        (
            TOPIC,
            Column("requests", "reads from the remote store"),
            Column("bytes", "bytes read from it"),
            Column("errors", "reads that failed"),
            *OWNED,
        ),
    ),
    Table(
        "remote_reads_brokers", "broker", section("remote_reads", "brokers"),
        (
            SOURCE,
            Column("reads", "reads from the remote store"),
            Column("read_ms_mean", "mean time of one, milliseconds"),
        ),
    ),
)  # fmt: skip
