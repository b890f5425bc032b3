"""What was published of a period and is another figure now: late data changed it.

Statements made before the period was over are no such thing: time went on.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from lakehouse import tables
from lakehouse.errors import TableNotFoundError
from lakehouse.gold_rows import is_same
from lakehouse.periods import iso, micros
from lakehouse.report.judged import SUBJECT
from lakehouse.tables import SLA_FIGURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold


def restated(gold: Gold, objectives: Sequence[Mapping[str, Any]]) -> list[Row] | None:
    """The figures of the facts that differ from those published last; None: nothing was published.

    Args:
        gold: The cluster's gold.
        objectives: As in the facts, each over its own time.
    """
    published = _published(gold, objectives)
    return changed(objectives, published) if published else None


def changed(objectives: Iterable[Mapping[str, Any]], published: Sequence[Row]) -> list[Row]:
    """What differs, in the order of the facts.

    Args:
        objectives: As in the facts.
        published: Rows of gold/sla of the same cluster, in any order; ``stated_at`` in
            microseconds, their time as ``from`` and ``to`` as the facts have it.
    """
    earlier: dict[tuple[Any, ...], list[Row]] = {}
    for row in sorted(published, key=lambda row: int(row["stated_at"])):
        key = (row["objective"], row.get("from"), row.get("to"), *(row[name] for name in SUBJECT))
        earlier.setdefault(key, []).append(row)
    found = []
    for one in objectives:
        of = (one["name"], one.get("from"), one.get("to"))
        for now in one.get("subjects") or ():
            told = earlier.get((*of, *(now.get(name) for name in SUBJECT)), [])
            others = [row for row in told if any(row[key] != now.get(key) for key in SLA_FIGURES)]
            if others:
                found.append(_row(one, now, others))
    return found


def _row(objective: Mapping[str, Any], now: Mapping[str, Any], others: Sequence[Row]) -> Row:
    before = others[-1]
    at = iso(before["stated_at"])
    return {
        "objective": objective["name"],
        "title": objective.get("title"),
        **{name: now.get(name) for name in SUBJECT},
        "before": {
            "statement": before["statement"],
            "stated_at": at,
            **{key: before[key] for key in SLA_FIGURES},
        },
        "now": {key: now.get(key) for key in SLA_FIGURES},
    }


def _published(gold: Gold, objectives: Iterable[Mapping[str, Any]]) -> list[Row]:
    """What was stated of the cluster over the objectives' own times, when these were over."""
    times = {(_micros(one["from"]), _micros(one["to"])) for one in objectives if one.get("from")}
    try:
        rows = gold.engine.rows(tables.SLA)
    except TableNotFoundError:
        return []
    of_them = (f"(r.window = {start} AND r.window_end = {end})" for start, end in sorted(times))
    names = ("window", "window_end", "stated_at", "objective", *SUBJECT, "statement", *SLA_FIGURES)
    found = gold.ask(
        f"SELECT {', '.join(f'r.{name}' for name in names)} FROM {{rows}} r "
        f"WHERE {is_same('r.cluster', gold.cluster)} AND r.stated_at >= r.window_end "
        f"AND ({' OR '.join(of_them) or 'false'})",
        rows=rows,
    )
    return [{**row, "from": iso(row["window"]), "to": iso(row["window_end"])} for row in found]


def _micros(text: str) -> int:
    return micros(dt.datetime.fromisoformat(text))
