"""Sums of gold by subject and metric, and what the facts take of them.

Gold adds a lead that reaches back over the start of a window to that window's upper bound, for no
window knows the next one. The window after a period is not summed up, but it says how much of its
own bound lies before it: what was first seen just after the period may have begun in it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.gold_rows import Row, before_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.existence import Subject
    from lakehouse.report.gather import Gold
    from lakehouse.sla import Statement
    from lakehouse.tables import Table

Sums = defaultdict[Any, defaultdict[str, Row]]
"""Rows by subject, then by metric; a row that is not there is empty."""

BOUNDS: Final = ("", "_low", "_high")
_HIGH: Final = {
    "any_high_us": ("spill_us", "any_us"),
    "positive_high_us": ("spill_sum_us", "positive_us"),
}
"""The upper bounds: what of one lies before its window, and what was seen."""

_ZERO: Final = dict.fromkeys(("positive_us", "positive_low_us", "positive_high_us"), 0)


def sums(gold: Gold, table: Table, metrics: Sequence[str] = ()) -> Sums:
    """Sums of a table by what tells its subjects apart: its name, or a tuple of names."""
    found: Sums = defaultdict(lambda: defaultdict(dict))
    for row in gold.sums(table, metrics):
        found[_subject(row, table)][row["metric"]] = row
    return found


def raised(gold: Gold, table: Table, metrics: Sequence[str] = ()) -> Sums:
    """The same with upper bounds that take in what was first seen just after the period.

    Of a partition gold has no row while it was zero; then there is one here.
    """
    found = sums(gold, table, metrics)
    before = {
        high: before_window(spill, high, seen)
        for high, (spill, seen) in _HIGH.items()
        if high in table.column_names
    }
    chosen = [f"r.{name}" for name in table.keys] + [f"{us} AS {h}" for h, us in before.items()]
    after = gold.ask(
        f"SELECT {', '.join(chosen)} FROM {{rows}} r "
        f"WHERE greatest(0, {', '.join(before.values())}) > 0",
        rows=gold.after(table),
    )
    for more in after:
        subject, metric = _subject(more, table), more["metric"]
        if table is tables.PARTITIONS or metric in found.get(subject, ()):
            row = found[subject][metric] or {**more, **_ZERO}
            highs = {name: row[name] + more[name] for name in before if row[name] is not None}
            found[subject][metric] = row | highs
    return found


def _subject(row: Row, table: Table) -> Any:
    names = tuple(row[key] for key in table.keys if key not in {"cluster", "metric"})
    return names if len(names) > 1 else names[0]


def bounded(row: Row, stem: str, name: str, absent: int | None = None) -> Row:
    """The duration ``stem`` of a row and its two bounds, under another name; microseconds."""
    return {f"{name}{bound}_us": row.get(f"{stem}{bound}_us", absent) for bound in BOUNDS}


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


def told(one: Subject, metric: str) -> int | None:
    """A whole number that was told of a subject; None: nobody told."""
    value = one.attributes.get(metric)
    return None if value is None else int(value)
