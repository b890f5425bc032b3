"""Incidents of partitions: stretches that touch, from whatever source and hour, are one."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.gold_rows import Row, is_one_of
from lakehouse.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.periods import iso
from lakehouse.report.lookup import touching

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.report.gather import Gold

_NAMES: Final = ("metric", "topic", "partition", "source", "start", "end", "lead_us", "tail_us")


def incidents_of(gold: Gold) -> dict[tuple[str, int], list[Row]]:
    """Incidents per topic and partition, oldest first."""
    rows = gold.ask(
        f"SELECT {', '.join(f'r.{name}' for name in _NAMES)} FROM {{rows}} r "
        f"WHERE {is_one_of('r.metric', (UNDER_MIN_ISR, LEADERLESS))} AND r.partition IS NOT NULL",
        rows=gold.whole(tables.INCIDENTS),
    )
    return incidents(rows)


def incidents(stretches: Iterable[Row]) -> dict[tuple[str, int], list[Row]]:
    """Incidents per topic and partition, oldest first.

    Args:
        stretches: Rows of gold/incidents that are of partitions.
    """
    series = itemgetter("topic", "partition", "metric")
    span = itemgetter("start", "end")
    found: defaultdict[tuple[str, int], list[tuple[int, str, list[Row]]]] = defaultdict(list)
    ordered = sorted(stretches, key=lambda one: (*series(one), *span(one)))
    for (topic, partition, metric), alike in groupby(ordered, series):
        kind = "leaderless" if metric == LEADERLESS else "under_min_isr"
        joined = touching(alike, span)
        found[topic, partition] += [(pieces[0]["start"], kind, pieces) for pieces in joined]
    return {
        key: [_told(pieces, kind) for _, kind, pieces in sorted(told, key=itemgetter(0, 1))]
        for key, told in found.items()
    }


def _told(pieces: list[Row], kind: str) -> Row:
    """One incident; its edges are the tightest that any source saw."""
    start, end = min(p["start"] for p in pieces), max(p["end"] for p in pieces)
    return {
        "start": iso(start),
        "end": iso(end),
        "lead_us": min(p["lead_us"] for p in pieces if p["start"] == start),
        "tail_us": _tail(pieces, end),
        "kind": kind,
        "sources": sorted({p["source"] for p in pieces}),
    }


def _tail(pieces: list[Row], end: int) -> int:
    """How long before its end an incident may have been over.

    A piece that begins at an hour's start may not have been bad at all: then the end may lie
    within the one before, of the same source.
    """
    by_end = {(piece["source"], piece["end"]): piece for piece in pieces}
    tails = []
    for source in {piece["source"] for piece in pieces if piece["end"] == end}:
        at, tail = end, 0
        while (piece := by_end.get((source, at))) is not None:
            tail += piece["tail_us"]
            if piece["tail_us"] < piece["end"] - piece["start"]:
                break
            at = piece["start"]
        tails.append(tail)
    return min(tails)
