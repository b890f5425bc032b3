"""Spans of time, from an instant to another: put together, cut and compared."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Span = tuple[int, int]
"""From when until when, microseconds."""


class Spanned(Protocol):
    """Whatever lasts from an instant to another, microseconds."""

    @property
    def start(self) -> int:
        """First instant."""

    @property
    def end(self) -> int:
        """First instant after it."""


T = TypeVar("T", bound=Spanned)


def union(spans: Iterable[Span]) -> list[Span]:
    """Spans that touch or overlap, as one; in order. One that ends before it begins is none."""
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
    """What of a span no other covers, in order."""
    left: list[Span] = []
    reached, end = within
    for first, last in union(spans):
        if first > reached:
            left.append((reached, min(first, end)))
        reached = max(reached, last)
        if reached >= end:
            break
    if reached < end:
        left.append((reached, end))
    return [one for one in left if one[0] < one[1]]


def overlap(one: Span, other: Span) -> Span | None:
    """What two spans have in common; None where that is nothing."""
    start, end = max(one[0], other[0]), min(one[1], other[1])
    return (start, end) if start < end else None


def shared(spans: Sequence[Span], things: Iterable[T]) -> list[list[T]]:
    """What overlaps each of some spans, whose starts and ends are in order."""
    found: list[list[T]] = [[] for _ in spans]
    ends = [end for _, end in spans]
    for one in things:
        at = bisect_right(ends, one.start)
        while at < len(spans) and spans[at][0] < one.end:
            found[at].append(one)
            at += 1
    return found
