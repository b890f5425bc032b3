"""The sections of a report, each made of gold's rows."""

from __future__ import annotations

from collections import defaultdict
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from lakehouse import remote_index, tables
from lakehouse.existence import expected_us, with_ends
from lakehouse.metrics import LEADERLESS, PARTITIONS_TOLD, UNAVAILABLE, UNDER_MIN_ISR
from lakehouse.periods import instant
from lakehouse.report import quotas as limits
from lakehouse.report.from_bronze import bad_runs, failures, last_lags
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.report.outages import incidents
from lakehouse.report.unseen import unseen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakehouse.existence import Subject
    from lakehouse.report.begun import Begun
    from lakehouse.report.gather import Gold, Row
    from lakehouse.sla import Statement

AT_MIN_ISR: Final = "kafka.partition.at_min_isr"
ANY_FAMILY: Final = "any"
"""Stands for the families of a source that nobody ever read."""

_TIERED: Final = "kafka.topic.remote_storage_enabled"
_OF_PARTITION: Final = ("topic", "partition")
_OF_CLIENT: Final = ("user", "client_id")
_BOUNDS: Final = ("", "_low", "_high")
_UNAVAILABLE: Final = (UNDER_MIN_ISR, LEADERLESS, UNAVAILABLE)


def min_isr(
    gold: Gold, subjects: Sequence[Subject], stated: Sequence[Statement], begun: Begun
) -> Row:
    """KIP-164: under and at min ISR, and without a leader."""
    topics = _of_topics(gold, begun)
    sums = gold.sums(tables.PARTITIONS, ("metric", *_OF_PARTITION), _UNAVAILABLE)
    partitions = _by(begun.raised(sums, _OF_PARTITION), _OF_PARTITION, "metric")
    outages = incidents(bad_runs(gold))
    unknown = _unknown(stated, UNAVAILABLE)
    missed = unseen(gold, stated)
    return {
        "topics": [
            {
                "topic": one.topic,
                "partitions": _count(one),
                **_bounded(topics[one.topic][UNDER_MIN_ISR], "any", "any"),
                **_bounded(topics[one.topic][UNDER_MIN_ISR], "positive", "under"),
                **_bounded(topics[one.topic][LEADERLESS], "positive", "leaderless"),
                **_bounded(topics[one.topic][UNAVAILABLE], "any", "unavailable_any"),
                "at_min_us": topics[one.topic][AT_MIN_ISR].get("positive_us"),
                "max_concurrent": topics[one.topic][UNAVAILABLE].get("max_concurrent"),
                "unknown_us": unknown.get(one.key),
                "unseen_us": missed[str(one.topic)].us,
                "partitions_unknown_us": missed[str(one.topic)].together(
                    _count(one), topics[one.topic][UNAVAILABLE]
                ),
            }
            for one in subjects
            if one.kind == "topic" and (one.key in unknown or one.topic in topics)
        ],
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                **_bounded(found[UNDER_MIN_ISR], "positive", "under", absent=0),
                **_bounded(found[LEADERLESS], "positive", "leaderless", absent=0),
                "unknown_us": missed[topic].alone(found[UNAVAILABLE]),
                "incidents": outages.get((topic, partition), []),
            }
            for (topic, partition), found in sorted(partitions.items())
            if any(found[metric].get("positive_high_us") for metric in (UNDER_MIN_ISR, LEADERLESS))
        ],
        "brokers": _isr_of_brokers(gold),
    }


def _isr_of_brokers(gold: Gold) -> list[Row]:
    rows = _by(gold.sums(tables.BROKERS, ("metric", "source")), "source", "metric")
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
    rows = _by(begun.raised(sums, _OF_CLIENT), _OF_CLIENT, "metric")
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
                    **_bounded(throttle, "any", "throttled", absent=0 if seen else None),
                    "throttle_ms_mean": _per_second(throttle, "positive_us"),
                    "throttle_ms_max": throttle.get("max"),
                    "rate_mean": _per_second(rates, "any_us"),
                    "rate_max": rates.get("max_total"),
                    "rate_unit": unit,
                    "quota": quota,
                    "unknown_us": times.unknown_us if times else None,
                }
            )
    found.sort(key=lambda one: -(one["throttled_us"] or 0))
    return {"clients": found}


def tier_lag(
    gold: Gold, subjects: Sequence[Subject], stated: Sequence[Statement], begun: Begun
) -> Row:
    """KIP-963: what waits for upload and for deletion, per topic."""
    rows = _of_topics(gold, begun)
    last = last_lags(gold)
    unknown = {metric: _unknown(stated, metric) for metric in (COPY_LAG, DELETE_LAG)}
    found = []
    for one in subjects:
        topic, metrics = str(one.topic), rows[one.topic]
        lags = [metrics[metric] for metric in (COPY_LAG, DELETE_LAG)]
        bad = any(lag.get("positive_high_us") for lag in lags)
        if one.kind != "topic" or not (bad or one.attributes.get(_TIERED) == 1):
            continue
        wrong = any(lag.get("known_wrong") for lag in lags)
        seen = _seen(stated, one)
        unseen = {metric: known.get(one.key) for metric, known in unknown.items()}
        found.append(
            {
                "topic": topic,
                "copy": {
                    **_lag(metrics, COPY_LAG, seen, last.get((COPY_LAG, topic))),
                    "unknown_us": unseen[COPY_LAG],
                },
                "delete": {
                    **_lag(metrics, DELETE_LAG, seen, last.get((DELETE_LAG, topic))),
                    "unknown_us": unseen[DELETE_LAG],
                },
                "unknown_us": _longest(unseen.values()),
                "flags": [tables.FLAG_KNOWN_WRONG] if wrong else [],
            }
        )
    return {"topics": found}


def _longest(times: Iterable[int | None]) -> int | None:
    """The longest time; None: one of them is not known."""
    known = list(times)
    return None if None in known else max(us for us in known if us is not None)


def _lag(metrics: Any, metric: str, seen: dict[str, int], last: float | None) -> Row:
    lag, segments = metrics[metric], metrics[metric.removesuffix("bytes") + "segments"]
    seconds = seen.get(metric, 0) / 1e6
    return {
        **_bounded(lag, "any", "lagging"),
        "max_bytes": lag.get("max_total"),
        "max_segments": segments.get("max_total"),
        "mean_bytes": lag["value_seconds"] / seconds if lag and seconds else None,
        "last_bytes": last,
    }


def _seen(stated: Sequence[Statement], one: Subject) -> dict[str, int]:
    return {
        s.objective.metric: s.times.good_us + s.times.bad_us
        for s in stated
        if s.subject.kind == "topic" and s.subject.key == one.key
    }


def lost_before_read(gold: Gold) -> Row:
    """KIP-490: offsets that expired before a group had read them."""
    rows = gold.sums(tables.NON_CONSUMED, ("group", "topic", "partition"))
    names = ("group", "topic", "partition", "offsets_low", "offsets_high", "unknown_us")
    rows.sort(key=lambda row: (-row["offsets_high"], str(row["group"]), str(row["topic"])))
    return {"groups": [{name: row[name] for name in names} for row in rows]}


def remote_reads(gold: Gold) -> Row:
    """KIP-1002: what was read from the remote tier."""
    topics = _by(gold.sums(tables.TOPICS, ("metric", "topic")), "topic", "metric")
    brokers = _by(gold.sums(tables.BROKERS, ("metric", "source")), "source", "metric")
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
                "read_ms_mean": _per_second(found[f"{reader}.fetch_time.mean"], "positive_us"),
            }
            for source, found in sorted(brokers.items())
            if found[f"{reader}.fetches"]
        ],
        "indexes": _indexes(gold),
    }


def _indexes(gold: Gold) -> list[Row]:
    rows = remote_index.counted(gold.whole(tables.BROKERS)).collect()
    return [one.as_json() for one in remote_index.costs(row.asDict() for row in rows)]


def coverage(gold: Gold, subjects: Sequence[Subject], now_us: int) -> Row:
    """What was to be seen and what was, per source and family."""
    rows = gold.sums(tables.COVERAGE, ("source", "family", "outcome"))
    failed = defaultdict(list)
    for row in sorted(failures(gold), key=lambda row: row["start"]):
        failed[(row["source"], row["family"])].append(row)
    sources = []
    for one, end_us in with_ends(subjects):
        if one.kind != "source":
            continue
        expected = expected_us(one, end_us, gold.period, now_us)
        mine = [row for row in rows if row["source"] == one.source]
        families = sorted({row["family"] for row in mine}) or ([ANY_FAMILY] if expected else [])
        for family in families:
            told = {row["outcome"]: row for row in mine if row["family"] == family}
            seen = told["ok"]["duration_us"] if "ok" in told else 0
            sources.append(_covered(one, family, told, (max(expected, seen), seen), failed))
    expected, seen = (sum(row[name] for row in sources) for name in ("expected_us", "observed_us"))
    return {
        "expected_us": expected,
        "observed_us": seen,
        "unknown_us": expected - seen,
        "percent": 100 * seen / expected if expected else None,
        "sources": sources,
    }


def _covered(
    one: Subject, family: str, told: dict[str, Row], times: tuple[int, int], failures: Any
) -> Row:
    expected, seen = times
    gaps = failures[(one.source, family)]
    return {
        "source": one.source,
        "family": family,
        "expected_us": expected,
        "observed_us": seen,
        "unknown_us": expected - seen,
        "percent": 100 * seen / expected if expected else None,
        "outcomes": {outcome: row["scrapes"] for outcome, row in sorted(told.items())},
        "interval_us": max((row["interval_us"] for row in told.values()), default=None),
        "slowest_us": ceil(told["ok"]["seconds_max"] * 1e6) if "ok" in told else None,
        "first_error": next((row["error"] for row in gaps if row["error"]), None),
        "gaps": _joined(gaps),
    }


def _joined(gaps: list[Row]) -> list[Row]:
    """Failures side by side as one gap."""
    joined: list[Row] = []
    for row in gaps:
        last = joined[-1] if joined else None
        if last and last["outcome"] == row["outcome"] and row["start"] <= last["end"]:
            last["end"] = max(last["end"], row["end"])
        else:
            joined.append({name: row[name] for name in ("start", "end", "outcome", "error")})
    for gap in joined:
        gap.update(start=_iso(gap["start"]), end=_iso(gap["end"]))
    return joined


def _of_topics(gold: Gold, begun: Begun) -> defaultdict[Any, Any]:
    """Sums of gold/topics by topic and metric."""
    rows = gold.sums(tables.TOPICS, ("metric", "topic"))
    return _by(begun.raised(rows, ("topic",)), "topic", "metric")


def _by(rows: list[Row], key: str | tuple[str, ...], inner: str) -> defaultdict[Any, Any]:
    """Rows by key, then by metric; a row that is not there is empty."""
    found: defaultdict[Any, defaultdict[str, Row]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        name = row[key] if isinstance(key, str) else tuple(row[part] for part in key)
        found[name][row[inner]] = row
    return found


def _bounded(row: Row, stem: str, name: str, absent: int | None = None) -> Row:
    return {f"{name}{bound}_us": row.get(f"{stem}{bound}_us", absent) for bound in _BOUNDS}


def _per_second(row: Row, time: str) -> float | None:
    seconds = (row.get(time) or 0) / 1e6
    return row["value_seconds"] / seconds if seconds else None


def _unknown(stated: Sequence[Statement], metric: str) -> dict[tuple[str | None, ...], int]:
    return {s.subject.key: s.unknown_us for s in stated if s.objective.metric == metric}


def _count(one: Subject) -> int | None:
    told = one.attributes.get(PARTITIONS_TOLD)
    return None if told is None else int(told)


def _iso(microseconds: int) -> str:
    return instant(microseconds).isoformat().replace("+00:00", "Z")
