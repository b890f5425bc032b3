"""A value that stands still between instants, and spans of time, in microseconds."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
Span = tuple[int, int]


class Steps(Generic[T]):
    """Piecewise constant over time; before the first instant it is ``first``."""

    def __init__(self, first: T) -> None:
        self.times: list[int] = []
        self.values: list[T] = [first]

    def set(self, at_us: int, value: T) -> None:
        """From an instant on it is something else; instants come in order."""
        if self.times and self.times[-1] == at_us:
            self.values[-1] = value
        elif value != self.values[-1]:
            self.times.append(at_us)
            self.values.append(value)

    def at(self, at_us: int) -> T:
        """The value at an instant."""
        return self.values[bisect_right(self.times, at_us)]

    def spans(self, holds: Callable[[T], bool], within: Span) -> list[Span]:
        """When something holds, inside of a span."""
        edges = [within[0], *(t for t in self.times if within[0] < t < within[1]), within[1]]
        return united((a, b) for a, b in pairwise(edges) if holds(self.at(a)))


def united(spans: Iterable[Span], gap_us: int = 0) -> list[Span]:
    """The union; spans that are no more than ``gap_us`` apart become one."""
    found: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if found and start - found[-1][1] <= gap_us:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def clipped(spans: Iterable[Span], within: Span) -> list[Span]:
    """What of the spans lies inside of one."""
    cut = ((max(start, within[0]), min(end, within[1])) for start, end in spans)
    return [span for span in cut if span[0] < span[1]]


def without(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    """Spans with holes cut out of them."""
    left = united(spans)
    for first, last in united(holes):
        left = [
            piece
            for start, end in left
            for piece in ((start, min(end, first)), (max(start, last), end))
            if piece[0] < piece[1]
        ]
    return left


def length(spans: Iterable[Span]) -> int:
    """How long they last together."""
    return sum(end - start for start, end in spans)
