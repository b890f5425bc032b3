"""What waits for tiered storage, by topic: the facts' ``tier_lag``."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.gold_rows import EXACT, is_one_of, is_same
from lakehouse.metrics import family
from lakehouse.periods import Period
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.report.sums import bounded, of_topics, unknown_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.begun import Begun
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement

_TIERED: Final = "kafka.topic.remote_storage_enabled"
_STILL_US: Final = 30_000_000  # brokers are read at different instants


def tier_lag(
    gold: Gold, subjects: Sequence[Subject], stated: Sequence[Statement], begun: Begun
) -> Row:
    """KIP-963: what waits for upload and for deletion, per topic."""
    rows = of_topics(gold, begun)
    last = {key: lag.known for key, lag in last_lags(gold).items()}
    means = _means(gold)
    unknown = {metric: unknown_of(stated, metric) for metric in (COPY_LAG, DELETE_LAG)}
    found = []
    for one in subjects:
        topic, metrics = str(one.topic), rows[one.topic]
        lags = [metrics[metric] for metric in (COPY_LAG, DELETE_LAG)]
        bad = any(lag.get("positive_high_us") for lag in lags)
        if one.kind != "topic" or not (bad or one.attributes.get(_TIERED) == 1):
            continue
        wrong = any(lag.get("known_wrong") for lag in lags)
        told = {
            metric: _lag(metrics, metric)
            | {
                "mean_bytes": means.get((metric, topic)),
                "last_bytes": last.get((metric, topic)),
                "unknown_us": known.get(one.key),
            }
            for metric, known in unknown.items()
        }
        found.append(
            {
                "topic": topic,
                "copy": told[COPY_LAG],
                "delete": told[DELETE_LAG],
                "unknown_us": _longest(lag["unknown_us"] for lag in told.values()),
                "flags": [tables.FLAG_KNOWN_WRONG] if wrong else [],
            }
        )
    return {"topics": found}


def _longest(times: Iterable[int | None]) -> int | None:
    """The longest time; None: one of them is not known."""
    known = list(times)
    return None if None in known else max(us for us in known if us is not None)


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
    # Of two windows the later one counts.
    rows = last.ask(
        "SELECT r.metric, r.topic, r.source, r.end, r.value FROM {rows} r "
        f"WHERE {is_one_of('r.metric', (COPY_LAG, DELETE_LAG))} ORDER BY r.end",
        rows=last.hours(tables.LAGS),
    )
    if not rows:
        return {}
    read = last.ask(
        "SELECT r.source, max(r.end) AS read_until FROM {rows} r "
        f"WHERE {is_same('r.family', family(COPY_LAG))} AND r.outcome = 'ok' GROUP BY r.source",
        rows=last.whole(tables.READINGS),
    )
    read_until = {row["source"]: row["read_until"] for row in read}
    found: dict[tuple[str, str], dict[str, _Told]] = {}
    for row in rows:
        told = found.setdefault((row["metric"], row["topic"]), {})
        told[row["source"]] = _Told(row["source"], row["end"], row["value"])
    return {key: last_of(list(told.values()), read_until) for key, told in found.items()}


class _Told(NamedTuple):
    source: str
    end_us: int
    value: float


def last_of(told: Sequence[_Told], read_until: Mapping[str, int]) -> LastLag:
    """What waits of one topic.

    Args:
        told: What each source reported last, and until when it did, microseconds.
        read_until: Until when each source was read; who is not in it was not.
    """
    newest = max(one.end_us for one in told)
    late = [one for one in told if one.end_us >= newest - _STILL_US]
    silent = [
        one for one in told if one not in late and read_until.get(one.source, 0) <= one.end_us
    ]
    known = None if silent else sum(one.value for one in late)
    return LastLag(known, sum(one.value for one in (*late, *silent)))
