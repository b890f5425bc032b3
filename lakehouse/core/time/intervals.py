"""Intervals of time: union, difference and overlap."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

Span = tuple[int, int]
"""From when until when, microseconds."""


class Spanned(Protocol):
    """Anything with a start and an end, microseconds."""

    @property
    def start(self) -> int:
        """First instant."""

    @property
    def end(self) -> int:
        """First instant after it."""


T = TypeVar("T", bound=Spanned)


def union(spans: Iterable[Span]) -> list[Span]:
    """The union of spans, in order; touching spans are joined, and empty ones left out."""
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def length(spans: Iterable[Span]) -> int:
    """Time that at least one of the spans covers."""
    return sum(end - start for start, end in union(spans))


def without(within: Span, spans: Iterable[Span]) -> list[Span]:
    """The parts of ``within`` that no span covers, in order."""
    left: list[Span] = []
    reached, end = within
    for first, last in union(spans):
        left.append((reached, min(first, end)))
        reached = max(reached, last)
    left.append((reached, end))
    return [(start, end) for start, end in left if start < end]


def overlap(one: Span, other: Span) -> Span | None:
    """The intersection of two spans; None where it is empty."""
    start, end = max(one[0], other[0]), min(one[1], other[1])
    return (start, end) if start < end else None


def shared(spans: Sequence[Span], things: Iterable[T]) -> list[list[T]]:
    """The things that overlap each span; the spans' starts and ends are in order."""
    overlapping: list[list[T]] = [[] for _ in spans]
    ends = [end for _, end in spans]
    for thing in things:
        index = bisect_right(ends, thing.start)
        while index < len(spans) and spans[index][0] < thing.end:
            overlapping[index].append(thing)
            index += 1
    return overlapping
