"""Half-open intervals of time, united."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Spans:
    """The union of intervals, in microseconds."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._spans: list[tuple[int, int]] = []
        for start, end in sorted(span for span in spans if span[0] < span[1]):
            if self._spans and start <= self._spans[-1][1]:
                self._spans[-1] = (self._spans[-1][0], max(end, self._spans[-1][1]))
            else:
                self._spans.append((start, end))
        self._starts = [start for start, _ in self._spans]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._spans)

    def __contains__(self, at_us: int) -> bool:
        return self.covers(at_us, at_us + 1)

    def covers(self, start: int, end: int) -> bool:
        """Whether one of them holds all of an interval; an empty one is held by any."""
        number = bisect_right(self._starts, start) - 1
        return start >= end or (number >= 0 and self._spans[number][1] >= end)

    def touches(self, start: int, end: int) -> bool:
        """Whether any of them has something of an interval."""
        return any(own < end and start < own_end for own, own_end in self._spans)

    def last_before(self, at_us: int) -> int:
        """The end of the last one that ends before an instant, 0 where there is none."""
        return max((end for _, end in self._spans if end <= at_us), default=0)

    def longest_gap(self, start: int, end: int) -> int:
        """The longest part of an interval that none of them has."""
        longest, at = 0, start
        for own, own_end in self._spans:
            if own_end <= start:
                continue
            if own >= end:
                break
            longest, at = max(longest, own - at), max(at, own_end)
        return max(longest, end - at, 0)
