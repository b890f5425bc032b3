"""What waits for tiered storage, by topic: the facts' ``tier_lag``."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.gold_rows import EXACT, is_one_of, is_same
from lakehouse.metrics import family
from lakehouse.periods import Period
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.report.sums import bounded, raised, unknown_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement

_TIERED: Final = "kafka.topic.remote_storage_enabled"
_STILL_US: Final = 30_000_000  # brokers are read at different instants


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
                **_lag(metrics, metric),
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


def _lag(metrics: Any, metric: str) -> Row:
    lag, segments = metrics[metric], metrics[metric.removesuffix("bytes") + "segments"]
    return {
        **bounded(lag, "any", "lagging"),
        "max_bytes": lag.get("max_total"),
        "max_segments": segments.get("max_total"),
    }


def _means(gold: Gold) -> dict[tuple[str, str], float]:
    """Lag on the mean over the time in which anybody told of it, bytes, per metric and topic."""
    # Brokers that report in turns are several series in the time of one. As no total was above the
    # greatest, it took at least so long to add up to what there is.
    seconds = (
        "greatest(CAST(r.observed_us AS DOUBLE) / nullif(r.series, 0) / 1e6, "
        "CASE WHEN r.max_total > 0 THEN r.value_seconds / r.max_total END)"
    )
    sums = gold.ask(
        "SELECT r.metric, r.topic, "
        f"CAST(sum(CAST(r.value_seconds AS {EXACT})) AS DOUBLE) AS value_seconds, "
        f"CAST(sum(CAST({seconds} AS {EXACT})) AS DOUBLE) AS seconds "
        f"FROM {{rows}} r WHERE {is_one_of('r.metric', (COPY_LAG, DELETE_LAG))} "
        "GROUP BY r.metric, r.topic",
        rows=gold.finest(tables.TOPICS),
    )
    return {
        (row["metric"], row["topic"]): row["value_seconds"] / row["seconds"]
        for row in sums
        if row["seconds"]
    }


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
