"""The sections of a report, each made of gold's rows."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final, NamedTuple

from lakehouse import remote_index, tables
from lakehouse.gold_rows import EXACT, is_one_of, is_same
from lakehouse.metrics import LEADERLESS, PARTITIONS_TOLD, UNAVAILABLE, UNDER_MIN_ISR, family
from lakehouse.periods import Period
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.report.outages import incidents_of
from lakehouse.report.quotas import quotas, uses
from lakehouse.report.seen import unseen
from lakehouse.report.sums import bounded, per_second, raised, sums, told, unknown_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement

_AT_MIN_ISR: Final = "kafka.partition.at_min_isr"
_BROKERS_OWN: Final = "kafka.broker.under_min_isr_partitions"
_READER: Final = "kafka.broker.remote_log_reader"
_TIERED: Final = "kafka.topic.remote_storage_enabled"
_STILL_US: Final = 30_000_000  # brokers are read at different instants
_STORED: Final = "kafka.topic.remote_log_size.bytes"
_LOST: Final = "kafka.group.non_consumed"
_MOVED: Final = {
    "uploaded_bytes": "kafka.topic.remote_copy.bytes",
    "read_bytes": "kafka.topic.remote_fetch.bytes",
}


def min_isr(gold: Gold, subjects: Sequence[Subject], stated: Sequence[Statement]) -> Row:
    """KIP-164: under and at min ISR, and without a leader."""
    topics = raised(gold, tables.TOPICS)
    of_partitions = (UNDER_MIN_ISR, LEADERLESS, UNAVAILABLE)
    partitions = raised(gold, tables.PARTITIONS, of_partitions)
    outages = incidents_of(gold)
    unknown = unknown_of(stated, UNAVAILABLE)
    missed = unseen(gold, stated)
    return {
        "topics": [
            {
                "topic": one.topic,
                "partitions": told(one, PARTITIONS_TOLD),
                **bounded(found[UNDER_MIN_ISR], "any", "any"),
                **bounded(found[UNDER_MIN_ISR], "positive", "under"),
                **bounded(found[LEADERLESS], "positive", "leaderless"),
                **bounded(found[UNAVAILABLE], "any", "unavailable_any"),
                "at_min_us": found[_AT_MIN_ISR].get("positive_us"),
                "max_concurrent": found[UNAVAILABLE].get("max_concurrent"),
                "unknown_us": unknown.get(one.key),
                "unseen_us": missed[str(one.topic)].us,
                "partitions_unknown_us": missed[str(one.topic)].together(
                    told(one, PARTITIONS_TOLD), found[UNAVAILABLE]
                ),
            }
            for one in subjects
            if one.kind == "topic" and (one.key in unknown or one.topic in topics)
            for found in [topics[one.topic]]
        ],
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                **bounded(found[UNDER_MIN_ISR], "positive", "under", absent=0),
                **bounded(found[LEADERLESS], "positive", "leaderless", absent=0),
                "unknown_us": missed[topic].alone(found[UNAVAILABLE]),
                "incidents": outages.get((topic, partition), []),
            }
            for (topic, partition), found in sorted(partitions.items())
            if any(found[metric].get("positive_high_us") for metric in (UNDER_MIN_ISR, LEADERLESS))
        ],
        "brokers": [
            {
                "source": source,
                "under_min_isr_partition_seconds": found[_BROKERS_OWN].get("value_seconds"),
                "sum_of_partitions_seconds": found[UNDER_MIN_ISR].get("value_seconds"),
                "leaderless_partition_seconds": found[LEADERLESS].get("value_seconds"),
            }
            for source, found in sorted(sums(gold, tables.BROKERS).items())
            if _BROKERS_OWN in found or UNDER_MIN_ISR in found
        ],
    }


def throttling(gold: Gold, subjects: Sequence[Subject], stated: Sequence[Statement]) -> Row:
    """KIP-13: throttled time per client and kind of request, and its rate against its quota."""
    judged: dict[tuple[str | None, ...], Statement] = {}
    for one in stated:
        judged.setdefault((one.objective.metric, one.subject.user, one.subject.client_id), one)
    found = []
    for use in uses(quotas(subjects), raised(gold, tables.CLIENTS)):
        if not use.throttle.get("positive_high_us") and (use.held is None or not use.rate):
            continue
        times = judged.get((use.throttle_metric, *use.client.values()))
        seen = times is not None and times.attainment is not None
        found.append(
            {
                **use.client,
                "kind": use.kind,
                **bounded(use.throttle, "any", "throttled", absent=0 if seen else None),
                "throttle_ms_mean": per_second(use.throttle, "positive_us"),
                "throttle_ms_max": use.throttle.get("max"),
                "rate_mean": per_second(use.rate, "any_us"),
                "rate_max": use.rate.get("max_total"),
                "rate_unit": use.unit,
                "quota": use.held and use.held.limit,
                "unknown_us": times and times.unknown_us,
            }
        )
    found.sort(key=lambda one: -(one["throttled_us"] or 0))
    return {"clients": found}


def tier_lag(gold: Gold, subjects: Sequence[Subject], stated: Sequence[Statement]) -> Row:
    """KIP-963: what waits for upload and for deletion, per topic."""
    rows, last, means = raised(gold, tables.TOPICS), last_lags(gold), _means(gold)
    unknown = {metric: unknown_of(stated, metric) for metric in (COPY_LAG, DELETE_LAG)}
    found = []
    for one in subjects:
        topic, metrics = str(one.topic), rows[one.topic]
        lags = [metrics[metric] for metric in (COPY_LAG, DELETE_LAG)]
        bad = any(lag.get("positive_high_us") for lag in lags)
        if one.kind != "topic" or not (bad or one.attributes.get(_TIERED) == 1):
            continue
        copy, delete = (
            {
                **bounded(metrics[metric], "any", "lagging"),
                "max_bytes": metrics[metric].get("max_total"),
                "max_segments": metrics[f"{metric.removesuffix('bytes')}segments"].get("max_total"),
                "mean_bytes": means.get((metric, topic)),
                "last_bytes": last[metric, topic].known if (metric, topic) in last else None,
                "unknown_us": known.get(one.key),
            }
            for metric, known in unknown.items()
        )
        times = [lag["unknown_us"] for lag in (copy, delete)]
        wrong = any(lag.get("known_wrong") for lag in lags)
        found.append(
            {
                "topic": topic,
                "copy": copy,
                "delete": delete,
                "unknown_us": None if None in times else max(times),
                "flags": [tables.FLAG_KNOWN_WRONG] if wrong else [],
            }
        )
    return {"topics": found}


def _means(gold: Gold) -> dict[tuple[str, str], float | None]:
    """Lag on the mean over the time in which anybody told of it, bytes, per metric and topic."""
    # Brokers that report in turns are several series in the time of one. As no total was above the
    # greatest, it took at least so long to add up to what there is.
    seconds = (
        "greatest(CAST(r.observed_us AS DOUBLE) / nullif(r.series, 0) / 1e6, "
        "CASE WHEN r.max_total > 0 THEN r.value_seconds / r.max_total END)"
    )
    total, time = (
        f"CAST(sum(CAST({what} AS {EXACT})) AS DOUBLE)" for what in ("r.value_seconds", seconds)
    )
    rows = gold.ask(
        f"SELECT r.metric, r.topic, {total} / nullif({time}, 0) AS mean "
        f"FROM {{rows}} r WHERE {is_one_of('r.metric', (COPY_LAG, DELETE_LAG))} "
        "GROUP BY r.metric, r.topic",
        rows=gold.finest(tables.TOPICS),
    )
    return {(row["metric"], row["topic"]): row["mean"] for row in rows}


def lost_before_read(gold: Gold, stated: Sequence[Statement]) -> Row:
    """KIP-490: offsets that expired before a group had read them.

    What expired while nobody looked is in no bound, so that time is told: of all the group reads.
    """
    rows = gold.sums(tables.NON_CONSUMED)
    names = ("group", "topic", "partition", "offsets_low", "offsets_high", "unknown_us")
    rows.sort(key=lambda row: (-row["offsets_high"], str(row["group"]), str(row["topic"])))
    unknown = {key[3]: us for key, us in unknown_of(stated, _LOST).items()}
    for row in rows:
        row["unknown_us"] = max(row["unknown_us"], unknown.get(row["group"], 0))
    return {"groups": [{name: row[name] for name in names} for row in rows]}


def remote_reads(gold: Gold) -> Row:
    """KIP-1002: what was read from the remote tier."""
    brokers = sums(gold, tables.BROKERS)
    topics = [
        {"topic": topic}
        | {
            name: found[f"kafka.topic.remote_fetch.{name}"].get("increase")
            for name in ("requests", "bytes", "errors")
        }
        for topic, found in sorted(sums(gold, tables.TOPICS).items())
    ]
    return {
        "topics": [row for row in topics if row["requests"] or row["bytes"] or row["errors"]],
        "brokers": [
            {
                "source": source,
                "reads": found[f"{_READER}.fetches"].get("increase"),
                "read_ms_mean": per_second(found[f"{_READER}.fetch_time.mean"], "positive_us"),
            }
            for source, found in sorted(brokers.items())
            if found[f"{_READER}.fetches"]
        ],
        "indexes": [one.as_json() for one in remote_index.costs(brokers)],
    }


def tiering(gold: Gold, stated: Sequence[Statement]) -> Row:
    """Per topic of which anything was told: bytes uploaded and read, and byte-seconds stored."""
    unknown = {key[0]: us for key, us in unknown_of(stated, COPY_LAG).items()}
    topics = [
        {
            "topic": topic,
            **{key: found[metric].get("increase") for key, metric in _MOVED.items()},
            "stored_byte_seconds": found[_STORED].get("value_seconds"),
            "unknown_us": unknown.get(topic),
        }
        for topic, found in sorted(sums(gold, tables.TOPICS).items())
    ]
    figures = (*_MOVED, "stored_byte_seconds")
    return {"topics": [row for row in topics if any(row[key] for key in figures)]}


class LastLag(NamedTuple):
    """What waits of a topic at the end of a period, bytes.

    Attributes:
        known: The sum over its brokers; None: one of them was read no more that may lead it still.
        told: The sum of what each of these reported last, if that was earlier than the others.
    """

    known: float | None
    told: float


def last_lags(gold: Gold) -> dict[tuple[str, str], LastLag]:
    """Lag at the end of the period, per metric and topic.

    A broker that stopped reporting a topic while it was read on leads it no more.
    """
    start = gold.period.end - 2 * dt.timedelta(seconds=gold.window_seconds)
    last = gold.within(Period(max(gold.period.start, start), gold.period.end))
    # What each broker reported last, when any of them did, and until when it was read.
    told = (
        "SELECT r.metric, r.topic, r.source, r.end, r.value, row_number() OVER (PARTITION BY "
        "r.metric, r.topic, r.source ORDER BY r.end DESC, r.value) AS place, "
        "max(r.end) OVER (PARTITION BY r.metric, r.topic) AS newest "
        f"FROM {{lags}} r WHERE {is_one_of('r.metric', (COPY_LAG, DELETE_LAG))}"
    )
    read = (
        "SELECT r.source, max(r.end) AS until FROM {readings} r "
        f"WHERE {is_same('r.family', family(COPY_LAG))} AND r.outcome = 'ok' GROUP BY r.source"
    )
    late = f"t.end >= t.newest - {_STILL_US}"
    rows = last.ask(
        f"SELECT t.metric, t.topic, CAST(sum(CAST(t.value AS {EXACT})) AS DOUBLE) AS told, "
        f"min(CASE WHEN {late} THEN 1 ELSE 0 END) AS is_known "
        f"FROM ({told}) t LEFT JOIN ({read}) u ON u.source = t.source "
        f"WHERE t.place = 1 AND ({late} OR coalesce(u.until, 0) <= t.end) "
        "GROUP BY t.metric, t.topic",
        lags=last.hours(tables.LAGS),
        readings=last.whole(tables.READINGS),
    )
    return {
        (row["metric"], row["topic"]): LastLag(
            row["told"] if row["is_known"] else None, row["told"]
        )
        for row in rows
    }
