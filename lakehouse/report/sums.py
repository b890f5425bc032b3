"""Sums of gold by subject and metric, and what the facts take of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.metrics import PARTITIONS_TOLD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.begun import Begun
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement

_BOUNDS: Final = ("", "_low", "_high")


def of_topics(gold: Gold, begun: Begun) -> defaultdict[Any, Any]:
    """Sums of gold/topics by topic and metric."""
    rows = gold.sums(tables.TOPICS, ("metric", "topic"))
    return by(begun.raised(rows, ("topic",)), "topic", "metric")


def by(rows: list[Row], key: str | tuple[str, ...], inner: str) -> defaultdict[Any, Any]:
    """Rows by key, then by metric; a row that is not there is empty."""
    found: defaultdict[Any, defaultdict[str, Row]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        name = row[key] if isinstance(key, str) else tuple(row[part] for part in key)
        found[name][row[inner]] = row
    return found


def bounded(row: Row, stem: str, name: str, absent: int | None = None) -> Row:
    """The duration ``stem`` of a row and its two bounds, under another name; microseconds."""
    return {f"{name}{bound}_us": row.get(f"{stem}{bound}_us", absent) for bound in _BOUNDS}


def per_second(row: Row, time: str) -> float | None:
    """A value's mean over the time ``time``; None where there was none."""
    seconds = (row.get(time) or 0) / 1e6
    return row["value_seconds"] / seconds if seconds else None


def seconds_mean(row: Row) -> float:
    """A total's mean over the time in which anybody told of it; 0 where nobody did.

    Brokers that tell in turns are several series in the time of one. As no total was above the
    greatest, it took at least so long to add up to what there is.
    """
    total = row["value_seconds"] or 0.0
    seconds = (row["observed_us"] or 0) / 1e6 / (row["series"] or 1)
    if row["max_total"]:
        seconds = max(seconds, total / row["max_total"])
    return total / seconds if seconds else 0.0


def unknown_of(stated: Sequence[Statement], metric: str) -> dict[tuple[str | None, ...], int]:
    """The unknown time of each subject, microseconds, by the objectives on the metric.

    Of several the least: what is seen to be bad is not unknown, and a lower threshold sees more.
    """
    found: dict[tuple[str | None, ...], int] = {}
    for one in stated:
        if one.objective.metric == metric:
            key = one.subject.key
            found[key] = min(found.get(key, one.unknown_us), one.unknown_us)
    return found


def partitions_told(one: Subject) -> int | None:
    """How many partitions a topic has; None: nobody told."""
    told = one.attributes.get(PARTITIONS_TOLD)
    return None if told is None else int(told)
