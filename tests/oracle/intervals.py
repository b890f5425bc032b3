"""Half-open spans of whole microseconds: unions, lengths, how many at once."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Span = tuple[int, int]


def union(spans: Iterable[Span]) -> list[Span]:
    """The least list of spans that covers just the same instants, ascending."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(spans: Iterable[Span]) -> int:
    """Microseconds that spans last together, what they share counted as often as they share it."""
    return sum(end - start for start, end in spans)


def most_at_once(spans: Sequence[Span]) -> int:
    """The most spans that any instant lies in."""
    starts = sorted(start for start, _ in spans)
    ends = sorted(end for _, end in spans)
    return max((bisect_right(starts, at) - bisect_right(ends, at) for at in starts), default=0)


def cuts(spans: Iterable[Span]) -> list[Span]:
    """The stretches between all edges of spans, so that each span holds each of them or none."""
    edges = sorted({edge for span in spans for edge in span})
    return list(pairwise(edges))
