"""Incidents of partitions: runs that touch, from whatever source and window, are one."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from lakehouse.metrics import LEADERLESS
from lakehouse.periods import iso
from lakehouse.tables import FLAG_NEXT_POSITIVE, FLAG_PREVIOUS_POSITIVE

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]

_KINDS: Final = {LEADERLESS: "leaderless"}


def incidents(runs: Iterable[Row]) -> dict[tuple[str, int], list[Row]]:
    """Incidents per topic and partition, oldest first.

    Args:
        runs: Positive runs of partitions, instants in microseconds. A folded row of zeros never
            comes here, so every run names its partition.
    """
    series: defaultdict[tuple[str, int, str], list[Row]] = defaultdict(list)
    for run in runs:
        kind = _KINDS.get(run["metric"], "under_min_isr")
        series[(run["topic"], run["partition"], kind)].append(run)
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
    first = [p for p in pieces if p["start"] == start]
    return {
        "start": iso(start),
        "end": iso(end),
        "lead_us": min(_edge(p, "lead_us", FLAG_PREVIOUS_POSITIVE) for p in first),
        "tail_us": _tail(pieces, end),
        "kind": kind,
        "sources": sorted({p["source"] for p in pieces}),
    }


def _tail(pieces: list[Row], end: int) -> int:
    """How long before its end an incident may have been over.

    A piece that begins at a window's start may not have been bad at all: then the end may lie
    within the one before, of the same source.
    """
    by_end = {(piece["source"], piece["end"]): piece for piece in pieces}
    tails = []
    for source in {piece["source"] for piece in pieces if piece["end"] == end}:
        at, tail = end, 0
        while (piece := by_end.get((source, at))) is not None:
            length = piece["end"] - piece["start"]
            edge = min(_edge(piece, "tail_us", FLAG_NEXT_POSITIVE), length)
            tail += edge
            if edge < length:
                break
            at = piece["start"]
        tails.append(tail)
    return min(tails)


def _edge(piece: Row, name: str, flag: str) -> int:
    return 0 if flag in (piece["flags"] or ()) else int(piece[name])
