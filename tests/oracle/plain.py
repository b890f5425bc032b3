"""Gold's finest rows in plain Python, from decoded runs.

Every function gives the figures of a table's rows by their key: cluster, window, then the table's
own columns in their order.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tests.oracle import claims
from tests.oracle.attention import Attention
from tests.oracle.consumer_lag import consumer_lag
from tests.oracle.distributions import distributions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.oracle.rows import Bronze, Run

Key = tuple[Any, ...]
Rows = dict[Key, dict[str, Any]]


def finest(bronze: Bronze) -> dict[str, Rows]:
    """Return the windows of every table that is summed over windows."""
    runs = bronze.usable()
    attention = Attention(bronze)
    by_topic = claims.topics(runs, attention.fenced)
    return {
        "topics": topics(runs, by_topic),
        "partitions": partitions(runs, by_topic),
        "clients": clients(runs),
        "groups": additive((run for run in runs if run.level == "group"), "group", "topic"),
        "sources": additive((run for run in runs if run.level != "group"), "source"),
        "labelled": labelled(runs),
        "coverage": coverage(bronze),
        "lost_offsets": lost_offsets(runs),
        "consumer_lag": consumer_lag(runs, attention),
        "distributions": distributions(runs),
    }


def topics(runs: list[Run], by_topic: dict[Key, claims.Subject]) -> Rows:
    rows = {key: {**one.measures(), **one.union()} for key, one in by_topic.items()}
    rising = [run for run in runs if run.level in ("partition", "topic")]
    return {**counters(rising, "metric", "topic"), **replicas(runs), **rows}


def replicas(runs: list[Run]) -> Rows:
    """Return sums of gauges over replicas, followers too, if one was above zero."""
    gauges = (run for run in runs if run.of_replicas and not run.counter)
    found = additive((run for run in gauges if run.topic is not None), "topic")
    return {key: row for key, row in found.items() if (row["value_max"] or 0) > 0}


def partitions(runs: list[Run], by_topic: dict[Key, claims.Subject]) -> Rows:
    rows = {
        (*key, number): figures
        for key, topic in by_topic.items()
        for number, one in claims.partitions_of(topic).items()
        if _not_zero(figures := one.measures())
    }
    rising = [run for run in runs if run.level == "partition" and run.partition is not None]
    return {**_risen(counters(rising, "metric", "topic", "partition")), **rows}


def clients(runs: list[Run]) -> Rows:
    found = claims.clients(runs).items()
    rows = {key: {**one.measures(), **one.union()} for key, one in found}
    rising = [run for run in runs if run.level == "client" and run.clients is None]
    return {
        **_risen(counters(rising, "metric", "user", "client_id")),
        **{key: row for key, row in rows.items() if _not_zero(row)},
    }


def _risen(rows: Rows) -> Rows:
    return {key: row for key, row in rows.items() if (row["increase"] or 0) > 0}


def _not_zero(row: dict[str, Any]) -> bool:
    return row["series_affected_us"] > 0 or bool(row["value_min"]) or bool(row["value_max"])


def _grouped(runs: Iterable[Run], *names: str) -> dict[Key, list[Run]]:
    found: defaultdict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        found[(run.cluster, run.window, *(getattr(run, name) for name in names))].append(run)
    return found


def _increase(runs: list[Run]) -> float | None:
    known = [Fraction(run.value) for run in runs if run.counter and run.value is not None]
    return float(sum(known)) if known else None


def counters(runs: list[Run], *names: str) -> Rows:
    """Return increases; an unknown increase is not observed."""
    rising = _grouped((run for run in runs if run.counter), *names)
    return {
        key: {
            "series_seen_us": sum(
                (run.end - run.start) * run.series for run in own if run.value is not None
            ),
            "increase": _increase(own),
            "series": max(run.series for run in own),
            "known_wrong": any("known_wrong" in run.flags for run in own),
        }
        for key, own in rising.items()
    }


def additive(runs: Iterable[Run], *names: str) -> Rows:
    """Return sums of series that do not overlap, of counters and gauges."""
    wanted = (run for run in runs if run.measure)
    return {key: _sum(own) for key, own in _grouped(wanted, "metric", *names).items()}


def labelled(runs: Iterable[Run]) -> Rows:
    """Return series of a source by their labels."""
    named = (run for run in runs if run.level == "source" and run.labels)
    rows = additive(named, "source", "labels")
    return {
        (*key, ",".join(f"{_escaped(label)}={_escaped(value)}" for label, value in labels)): row
        for (*key, labels), row in rows.items()
    }


def _escaped(name: str | None) -> str:
    return "".join(f"\\{one}" if one in "\\,=" else one for one in name or "")


def _sum(runs: list[Run]) -> dict[str, Any]:
    gauges = [run for run in runs if not run.counter]
    positive = [run for run in gauges if run.positive]
    values = [run.value for run in gauges if run.value is not None]
    amount = sum((Fraction(run.value or 0.0) * (run.end - run.start) for run in gauges), Fraction())
    row = {
        "series_seen_us": sum(
            (run.end - run.start) * run.series
            for run in runs
            if not run.counter or run.value is not None
        ),
        "value_seconds": float(amount / 1_000_000) if gauges else None,
        "value_min": claims.least(values),
        "value_max": claims.greatest(values),
        "increase": _increase(runs),
        "series": max(run.series for run in runs),
        "known_wrong": any("known_wrong" in run.flags for run in runs),
    }
    bounds = {
        "series_affected_us": sum(run.end - run.start for run in positive),
        "series_affected_low_us": sum(
            max(0, run.end - run.tail_edge - run.start) for run in positive
        ),
        "series_affected_high_us": sum(run.end - run.start + run.lead_edge for run in positive),
    }
    return {**row, **(bounds if gauges else dict.fromkeys(bounds))}


def coverage(bronze: Bronze) -> Rows:
    grouped = defaultdict(list)
    for row in bronze.accounts():
        key = (row.cluster, row.window, row.source, row.family, row.outcome)
        grouped[key].append(row)
    return {
        key: {
            "outcome_us": sum(row.end - row.start for row in own),
            "scrapes": sum(row.scrapes for row in own),
            "interval_us": max(row.interval for row in own),
            "seconds_total": float(sum(Fraction(row.seconds_total) for row in own)),
            "seconds_max": max(row.seconds_max for row in own),
        }
        for key, own in grouped.items()
    }


def lost_offsets(runs: list[Run]) -> Rows:
    """Return offsets that expired before a group read them, if the loss is not zero."""
    grouped: defaultdict[Key, list[Run]] = defaultdict(list)
    for run in runs:
        if run.level == "group" and run.side and run.value_name == "kafka.group.non_consumed":
            for partition in run.partitions or (run.partition,):
                key = (run.cluster, run.window, run.group, run.topic, partition)
                grouped[key].append(run)
    rows = {key: _lost(own) for key, own in grouped.items()}
    return {
        key: row for key, row in rows.items() if row["offsets_high"] or row["series_unknown_us"]
    }


def _lost(runs: list[Run]) -> dict[str, Any]:
    highs = [run for run in runs if run.side == "high"]
    lows = [run for run in runs if run.side == "low"]
    return {
        "offsets_low": float(sum(Fraction(run.value or 0.0) for run in lows)),
        "offsets_high": float(sum(Fraction(run.value or 0.0) for run in highs)),
        "series_seen_us": sum(run.end - run.start for run in highs if run.value is not None),
        "series_unknown_us": sum(run.end - run.start for run in highs if run.value is None),
    }
