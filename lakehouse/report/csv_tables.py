"""Which tables the CSV folder holds, their columns and what these mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse.report import incidents
from lakehouse.report.csv_columns import (
    CLIENT,
    GROUP,
    OBJECTIVE,
    PARTITION,
    SOURCE,
    TOPIC,
    UNKNOWN,
    USER,
    VERDICT,
    Column,
    Table,
    bounded,
    section,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakehouse.report.csv_columns import Facts, Row


def _subjects(facts: Facts) -> Iterable[Row]:
    return (
        {"objective": one.get("name"), "target": one.get("target"), **subject}
        for one in facts.get("objectives") or ()
        for subject in one.get("subjects") or ()
    )


def _points(facts: Facts) -> Iterable[Row]:
    names = ("at", "value", "low", "high")
    return (
        {
            **{key: line.get(key) for key in ("name", "unit", "subject")},
            **dict(zip(names, point, strict=True)),
        }
        for line in facts.get("timelines") or ()
        for point in line.get("points") or ()
    )


def _lag(way: str, what: str) -> tuple[Column, ...]:
    def column(key: str, meaning: str) -> Column:
        return Column(f"{way}_{key}", meaning, lambda row: (row.get(way) or {}).get(key))

    return (
        column("lagging_us", f"microseconds in which something waited for {what}"),
        column("lagging_low_us", f"what {way}_lagging_us is at least"),
        column("lagging_high_us", f"what {way}_lagging_us is at most"),
        column("max_bytes", f"most bytes that waited for {what}"),
        column("max_segments", f"most segments that waited for {what}"),
        column("mean_bytes", f"bytes that waited for {what}, on the mean over the time seen"),
        column("last_bytes", f"bytes that waited for {what} at the end"),
    )


def _joined(key: str) -> Callable[[Row], str]:
    return lambda row: " ".join(str(one) for one in row.get(key) or ())


def _outcomes(row: Row) -> str:
    return " ".join(f"{name}={count}" for name, count in (row.get("outcomes") or {}).items())


TABLES: Final = (
    Table(
        "verdicts", "objective, worst first", lambda facts: facts.get("verdicts") or (),
        (
            OBJECTIVE,
            Column("title", "the objective in words"),
            Column("target", "share of time that shall be good"),
            VERDICT,
            Column("subjects", "how many subjects were judged"),
            Column("missed", "how many of them missed it"),
            Column("uncertain", "of how many it cannot be said"),
            Column("no_data", "of how many nothing was seen"),
            Column("met", "how many of them met it"),
        ),
    ),
    Table(
        "attainment", "objective and subject", _subjects,
        (
            OBJECTIVE, TOPIC, USER, CLIENT, GROUP, SOURCE,
            Column("target", "share of time that shall be good"),
            Column("expected_us", "microseconds in which the subject existed"),
            Column("good_us", "microseconds seen wholly and good"),
            *bounded("bad", "seen bad"),
            UNKNOWN,
            Column("attainment", "good per good and bad time, 0 to 1"),
            Column("attainment_low", "with unknown time bad and bad time at its most"),
            Column("attainment_high", "with unknown time good and bad time at its least"),
            Column("budget_us", "microseconds that may be bad"),
            Column("budget_left_us", "budget_us less bad_us; below 0 it is overspent"),
            VERDICT,
        ),
    ),
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
        ),
    ),
    Table(
        "min_isr_partitions", "partition that was under min ISR or without a leader",
        section("min_isr", "partitions"),
        (
            TOPIC, PARTITION,
            *bounded("under", "under min ISR"),
            *bounded("leaderless", "without a leader"),
            Column("unknown_us", "microseconds in which its topic was not wholly seen"),
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
        ),
    ),
    Table(
        "tier_lag_topics", "tiered topic", section("tier_lag", "topics"),
        (
            TOPIC,
            *_lag("copy", "upload"),
            *_lag("delete", "deletion"),
            UNKNOWN,
            Column("flags", "known_wrong: this Kafka version reports it wrongly", _joined("flags")),
        ),
    ),
    Table(
        "lost_before_read", "group and partition", section("lost_before_read", "groups"),
        (
            GROUP, TOPIC, PARTITION,
            Column("offsets_low", "offsets deleted before the group had read them, at least"),
            Column("offsets_high", "the same, at most"),
            UNKNOWN,
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
    Table(
        "coverage_sources", "source and family of metrics", section("coverage", "sources"),
        (
            SOURCE,
            Column("family", "family; any: nobody ever read the source"),
            Column("expected_us", "microseconds that should have been seen"),
            Column("observed_us", "microseconds that were seen"),
            UNKNOWN,
            Column("percent", "observed_us of expected_us, per cent"),
            Column("outcomes", "attempts by outcome, such as ok=120 refused=22", _outcomes),
            Column("interval_us", "longest interval between two attempts, microseconds"),
            Column("first_error", "the first error"),
        ),
    ),
    Table(
        "coverage_gaps", "gap of a source and family", incidents.gaps,
        (
            SOURCE,
            Column("family", "family of metrics"),
            Column("start", "start of the gap, UTC"),
            Column("end", "its end, UTC"),
            Column("outcome", "how the attempts went"),
            Column("error", "what was told"),
        ),
    ),
    Table(
        "timelines", "timeline and window", _points,
        (
            Column("name", "what is counted"),
            Column("unit", "unit of the values (UCUM)"),
            Column("subject", "topic, client or group; empty: the whole cluster"),
            Column("at", "start of the window, UTC"),
            Column("value", "the figure; empty: nobody looked"),
            Column("low", "what it is at least"),
            Column("high", "what it is at most"),
        ),
    ),
    Table(
        "events", "event, in the order it was noticed", lambda facts: facts.get("events") or (),
        (
            Column("at", "when it was noticed, UTC"),
            SOURCE,
            Column("kind", "what happened"),
            TOPIC, PARTITION, USER, CLIENT, GROUP,
            Column("old", "before"),
            Column("new", "after"),
        ),
    ),
)  # fmt: skip
