"""What was published of a period and is another figure now: late data changed it.

Statements made before the period was over are no such thing: time went on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from lakehouse import lake as lakes
from lakehouse import tables
from lakehouse.errors import TableNotFoundError
from lakehouse.periods import instant, micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakehouse.report.gather import Gold, Row

SUBJECT: Final = ("topic", "user", "client_id", "group", "source")
_NAMES: Final = tuple(tables.SLA.column_names)
FIGURES: Final = _NAMES[_NAMES.index("expected_us") :]
"""The figures of a statement, as in gold/sla."""


def restated(gold: Gold, objectives: Iterable[Mapping[str, Any]]) -> list[Row] | None:
    """The figures of the facts that differ from those published last; None: nothing was published.

    Args:
        gold: The cluster's gold.
        objectives: As in the facts.
    """
    published = _published(gold)
    return changed(objectives, published) if published else None


def changed(objectives: Iterable[Mapping[str, Any]], published: Sequence[Row]) -> list[Row]:
    """What differs, in the order of the facts.

    Args:
        objectives: As in the facts.
        published: Rows of gold/sla of the same cluster and period, in any order; ``stated_at`` in
            microseconds.
    """
    earlier: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(published, key=lambda row: int(row["statement"])):
        key = (row["objective"], *(row[name] for name in SUBJECT))
        earlier.setdefault(key, []).append(row)
    found = []
    for one in objectives:
        for now in one.get("subjects") or ():
            told = earlier.get((one["name"], *(now.get(name) for name in SUBJECT)), [])
            others = [row for row in told if any(row[key] != now.get(key) for key in FIGURES)]
            if others:
                found.append(_row(one, now, others))
    return found


def _row(objective: Mapping[str, Any], now: Mapping[str, Any], others: Sequence[Row]) -> Row:
    before = others[-1]
    at = instant(before["stated_at"]).isoformat().replace("+00:00", "Z")
    return {
        "objective": objective["name"],
        "title": objective.get("title"),
        **{name: now.get(name) for name in SUBJECT},
        "before": {
            "statement": before["statement"],
            "stated_at": at,
            **{key: before[key] for key in FIGURES},
        },
        "now": {key: now.get(key) for key in FIGURES},
    }


def _published(gold: Gold) -> list[Row]:
    period = gold.period
    try:
        rows = lakes.read(gold.spark, gold.lake, tables.SLA)
    except TableNotFoundError:
        return []
    rows = rows.where(
        (F.col("cluster") == gold.cluster)
        & (F.col("grain") == period.grain)
        & (F.col("window") == F.lit(period.start))
        & (F.col("window_end") == F.lit(period.end))
    ).withColumn("stated_at", F.unix_micros("stated_at"))
    wanted = rows.where(F.col("stated_at") >= micros(period.end))
    names = ("objective", *SUBJECT, "statement", "stated_at", *FIGURES)
    return [row.asDict() for row in wanted.select(*(f"`{name}`" for name in names)).collect()]
