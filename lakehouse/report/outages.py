"""Incidents of partitions: stretches that touch, from whatever source and hour, are one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from lakehouse import tables
from lakehouse.gold_rows import Row, is_one_of
from lakehouse.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.periods import iso

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.report.gather import Gold


_KINDS: Final = {LEADERLESS: "leaderless"}


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
    series: defaultdict[tuple[str, int, str], list[Row]] = defaultdict(list)
    for one in stretches:
        kind = _KINDS.get(one["metric"], "under_min_isr")
        series[(one["topic"], one["partition"], kind)].append(one)
    joined = [
        (pieces[0]["start"], topic, partition, kind, pieces)
        for (topic, partition, kind), all_pieces in series.items()
        for pieces in _joined(all_pieces)
    ]
    found: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for _, topic, partition, kind, pieces in sorted(joined, key=lambda one: one[:4]):
        found[(topic, partition)].append(_told(pieces, kind))
    return dict(found)


def _joined(pieces: list[Row]) -> list[list[Row]]:
    joined: list[list[Row]] = []
    end = None
    for piece in sorted(pieces, key=lambda piece: (piece["start"], piece["end"])):
        if end is not None and piece["start"] <= end:
            joined[-1].append(piece)
        else:
            joined.append([piece])
            end = None
        end = piece["end"] if end is None else max(end, piece["end"])
    return joined


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
