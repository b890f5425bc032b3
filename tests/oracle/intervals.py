"""Half-open spans of whole microseconds: unions, lengths, how many at once."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

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


def count(spans: Iterable[Span], stretch: Span) -> int:
    """How many spans hold a stretch that no edge of theirs cuts."""
    return sum(start <= stretch[0] and stretch[1] <= end for start, end in spans)


def good_time(
    seen: list[Span], bad: list[Span], enough: Callable[[Span], bool], further: Sequence[Span] = ()
) -> int:
    """Time that is seen and enough of it, and nothing bad; ``further`` spans that count for it.

    Where somebody was not asked, that is bad as well.
    """
    return length(
        stretch
        for stretch in cuts([*seen, *bad, *further])
        if not count(bad, stretch) and count(seen, stretch) and enough(stretch)
    )


def at_best(seen: list[Span], bad: list[Span], down: Sequence[Span] = ()) -> int:
    """Good time while as many are seen as ever; those that are down count as seen."""
    most = max((count(seen, stretch) for stretch in cuts(seen)), default=0)
    both = [*seen, *down]
    return good_time(seen, bad, lambda stretch: count(both, stretch) >= most, down)
