"""The sections of a report, each made of gold's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse import remote_index, tables
from lakehouse.metrics import LEADERLESS, UNAVAILABLE, UNDER_MIN_ISR
from lakehouse.report import quotas as limits
from lakehouse.report.outages import incidents_of
from lakehouse.report.sums import bounded, by, of_topics, partitions_told, per_second, unknown_of
from lakehouse.report.unseen import unseen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.begun import Begun
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement

AT_MIN_ISR: Final = "kafka.partition.at_min_isr"
_OF_PARTITION: Final = ("topic", "partition")
_OF_CLIENT: Final = ("user", "client_id")
_UNAVAILABLE: Final = (UNDER_MIN_ISR, LEADERLESS, UNAVAILABLE)


def min_isr(
    gold: Gold, subjects: Sequence[Subject], stated: Sequence[Statement], begun: Begun
) -> Row:
    """KIP-164: under and at min ISR, and without a leader."""
    topics = of_topics(gold, begun)
    sums = gold.sums(tables.PARTITIONS, ("metric", *_OF_PARTITION), _UNAVAILABLE)
    partitions = by(begun.raised(sums, _OF_PARTITION), _OF_PARTITION, "metric")
    outages = incidents_of(gold)
    unknown = unknown_of(stated, UNAVAILABLE)
    missed = unseen(gold, stated)
    return {
        "topics": [
            {
                "topic": one.topic,
                "partitions": partitions_told(one),
                **bounded(topics[one.topic][UNDER_MIN_ISR], "any", "any"),
                **bounded(topics[one.topic][UNDER_MIN_ISR], "positive", "under"),
                **bounded(topics[one.topic][LEADERLESS], "positive", "leaderless"),
                **bounded(topics[one.topic][UNAVAILABLE], "any", "unavailable_any"),
                "at_min_us": topics[one.topic][AT_MIN_ISR].get("positive_us"),
                "max_concurrent": topics[one.topic][UNAVAILABLE].get("max_concurrent"),
                "unknown_us": unknown.get(one.key),
                "unseen_us": missed[str(one.topic)].us,
                "partitions_unknown_us": missed[str(one.topic)].together(
                    partitions_told(one), topics[one.topic][UNAVAILABLE]
                ),
            }
            for one in subjects
            if one.kind == "topic" and (one.key in unknown or one.topic in topics)
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
        "brokers": _isr_of_brokers(gold),
    }


def _isr_of_brokers(gold: Gold) -> list[Row]:
    rows = by(gold.sums(tables.BROKERS, ("metric", "source")), "source", "metric")
    told = "kafka.broker.under_min_isr_partitions"
    return [
        {
            "source": source,
            "under_min_isr_partition_seconds": found[told].get("value_seconds"),
            "sum_of_partitions_seconds": found[UNDER_MIN_ISR].get("value_seconds"),
            "leaderless_partition_seconds": found[LEADERLESS].get("value_seconds"),
        }
        for source, found in sorted(rows.items())
        if told in found or UNDER_MIN_ISR in found
    ]


def throttling(
    gold: Gold, subjects: Sequence[Subject], stated: Sequence[Statement], begun: Begun
) -> Row:
    """KIP-13: throttled time per client and kind of request, and its rate against its quota."""
    sums = gold.sums(tables.CLIENTS, ("metric", *_OF_CLIENT))
    rows = by(begun.raised(sums, _OF_CLIENT), _OF_CLIENT, "metric")
    known = limits.quotas(subjects)
    found = []
    for (user, client_id), metrics in rows.items():
        for kind, (rate, unit, limit) in limits.THROTTLES.items():
            metric = f"kafka.client.{kind}.throttle_time"
            throttle, rates = metrics[metric], metrics[rate]
            held = limits.in_force(known, user, client_id, limit)
            quota = None if held is None else held.limit
            if not throttle.get("positive_high_us") and (quota is None or not rates):
                continue
            times = next(
                (s for s in stated if s.objective.metric == metric
                 and (s.subject.user, s.subject.client_id) == (user, client_id)), None
            )  # fmt: skip
            seen = times is not None and times.attainment is not None
            found.append(
                {
                    "user": user,
                    "client_id": client_id,
                    "kind": kind,
                    **bounded(throttle, "any", "throttled", absent=0 if seen else None),
                    "throttle_ms_mean": per_second(throttle, "positive_us"),
                    "throttle_ms_max": throttle.get("max"),
                    "rate_mean": per_second(rates, "any_us"),
                    "rate_max": rates.get("max_total"),
                    "rate_unit": unit,
                    "quota": quota,
                    "unknown_us": times.unknown_us if times else None,
                }
            )
    found.sort(key=lambda one: -(one["throttled_us"] or 0))
    return {"clients": found}


def lost_before_read(gold: Gold) -> Row:
    """KIP-490: offsets that expired before a group had read them."""
    rows = gold.sums(tables.NON_CONSUMED, ("group", "topic", "partition"))
    names = ("group", "topic", "partition", "offsets_low", "offsets_high", "unknown_us")
    rows.sort(key=lambda row: (-row["offsets_high"], str(row["group"]), str(row["topic"])))
    return {"groups": [{name: row[name] for name in names} for row in rows]}


def remote_reads(gold: Gold) -> Row:
    """KIP-1002: what was read from the remote tier."""
    topics = by(gold.sums(tables.TOPICS, ("metric", "topic")), "topic", "metric")
    brokers = by(gold.sums(tables.BROKERS, ("metric", "source")), "source", "metric")
    names = ("requests", "bytes", "errors")
    reader = "kafka.broker.remote_log_reader"
    return {
        "topics": [
            {
                "topic": topic,
                **{n: found[f"kafka.topic.remote_fetch.{n}"].get("increase") for n in names},
            }
            for topic, found in sorted(topics.items())
            if any(found[f"kafka.topic.remote_fetch.{name}"].get("increase") for name in names)
        ],
        "brokers": [
            {
                "source": source,
                "reads": found[f"{reader}.fetches"].get("increase"),
                "read_ms_mean": per_second(found[f"{reader}.fetch_time.mean"], "positive_us"),
            }
            for source, found in sorted(brokers.items())
            if found[f"{reader}.fetches"]
        ],
        "indexes": [one.as_json() for one in remote_index.costs(brokers)],
    }
