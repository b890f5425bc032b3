"""Intervals of time: union, gaps and intersection."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

Span = tuple[int, int]
"""Interval: start and end (µs)."""


def union(spans: Iterable[Span]) -> list[Span]:
    """Return the union of intervals, in order: adjacent intervals joined, empty ones omitted."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def length(spans: Iterable[Span]) -> int:
    """Return the time covered by at least one interval."""
    return sum(end - start for start, end in union(spans))


def without(within: Span, spans: Iterable[Span]) -> list[Span]:
    """Return the parts of ``within`` outside all intervals, in order."""
    left: list[Span] = []
    reached, end = within
    for first, last in union(spans):
        left.append((reached, min(first, end)))
        reached = max(reached, last)
    left.append((reached, end))
    return [(start, end) for start, end in left if start < end]


def overlap(one: Span, other: Span) -> Span | None:
    """Return the intersection of two intervals. None if it is empty."""
    start, end = max(one[0], other[0]), min(one[1], other[1])
    return (start, end) if start < end else None


class HasSpan(Protocol):
    """An object with start and end (µs)."""

    @property
    def start(self) -> int: ...  # noqa: D102
    @property
    def end(self) -> int: ...  # noqa: D102


T = TypeVar("T")
Spanning = TypeVar("Spanning", bound=HasSpan)


def shared(spans: Sequence[Span], things: Iterable[Spanning]) -> list[list[Spanning]]:
    """Return the objects that overlap each interval; intervals are ordered by start and end."""
    overlapping: list[list[Spanning]] = [[] for _ in spans]
    ends = [end for _, end in spans]
    for thing in things:
        index = bisect_right(ends, thing.start)
        while index < len(spans) and spans[index][0] < thing.end:
            overlapping[index].append(thing)
            index += 1
    return overlapping


def touching(rows: Iterable[T], span: Callable[[T], tuple[Any, Any]]) -> list[list[T]]:
    """Return groups of adjacent or overlapping rows.

    Args:
        rows: Rows ordered by start.
        span: Returns start and end of a row.
    """
    groups: list[list[T]] = []
    reached: Any = None
    for row in rows:
        start, end = span(row)
        if groups and start <= reached:
            groups[-1].append(row)
        else:
            groups.append([row])
        reached = end if len(groups[-1]) == 1 else max(reached, end)
    return groups
