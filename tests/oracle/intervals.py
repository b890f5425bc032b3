"""Half-open intervals of whole microseconds: unions, lengths, counts at an instant."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Span = tuple[int, int]


def union(spans: Iterable[Span]) -> list[Span]:
    """Return the union as the fewest intervals, ascending."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(spans: Iterable[Span]) -> int:
    """Return the total length; common time counts once per interval."""
    return sum(end - start for start, end in spans)


def most_at_once(spans: Sequence[Span]) -> int:
    """Return the greatest number of intervals at an instant."""
    starts = sorted(start for start, _ in spans)
    ends = sorted(end for _, end in spans)
    return max((bisect_right(starts, at) - bisect_right(ends, at) for at in starts), default=0)


def cuts(spans: Iterable[Span]) -> list[Span]:
    """Return the intervals between all edges, so each span contains all of one or none of it."""
    edges = sorted({edge for span in spans for edge in span})
    return list(pairwise(edges))


def count(spans: Iterable[Span], stretch: Span) -> int:
    """Return the number of spans that contain an interval without an edge inside."""
    return sum(start <= stretch[0] and stretch[1] <= end for start, end in spans)


def good_time(
    seen: list[Span], bad: list[Span], enough: Callable[[Span], bool], further: Sequence[Span] = ()
) -> int:
    """Return observed time with enough reports and nothing bad; ``further`` adds reports.

    Time in which a source was not scraped is bad as well.
    """
    return length(
        stretch
        for stretch in cuts([*seen, *bad, *further])
        if not count(bad, stretch) and count(seen, stretch) and enough(stretch)
    )


def at_best(seen: list[Span], bad: list[Span], down: Sequence[Span] = ()) -> int:
    """Return good time while the number of reports is the greatest; down ones count."""
    most = max((count(seen, stretch) for stretch in cuts(seen)), default=0)
    both = [*seen, *down]
    return good_time(seen, bad, lambda stretch: count(both, stretch) >= most, down)
