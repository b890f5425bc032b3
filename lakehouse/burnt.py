"""For how long a budget surely burnt too fast, looked at again at every edge of a window.

Only bad time that is certain counts, against the whole of each length: it burnt so long at least.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from lakehouse.burn import LENGTHS_US

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.burn import Pair
    from lakehouse.slices import Span


class Bad(NamedTuple):
    """A window or slice that was bad for some time at least, microseconds."""

    at: int
    low_us: int


def least_us(pairs: Sequence[Pair], target: float) -> float:
    """With less bad time than this no pair burns, microseconds."""
    return min(_limit(pair.long, pair.rate, target) for pair in pairs)


def burnt_us(bad: Sequence[Bad], size_us: int, within: Span, pair: Pair, target: float) -> int:
    """Microseconds of a span in which both lengths of a pair burnt.

    Args:
        bad: In the order of time; from the long length before the span on.
        size_us: How long each window or slice is.
        within: The span.
        pair: What is looked at.
        target: The objective's.
    """
    ends = [one.at + size_us for one in bad]
    sums = [0, *accumulate(one.low_us for one in bad)]

    def burns(at: int, length: str) -> bool:
        first, last = bisect_left(ends, at - LENGTHS_US[length] + 1), bisect_left(ends, at + 1)
        return sums[last] - sums[first] >= _limit(length, pair.rate, target)

    # The short length burns only while something bad lies in it.
    looked_at = {
        at
        for end in ends
        for at in range(end, end + LENGTHS_US[pair.short], size_us)
        if within[0] < at <= within[1]
    }
    return size_us * sum(burns(at, pair.short) and burns(at, pair.long) for at in looked_at)


def _limit(length: str, rate: float, target: float) -> float:
    return rate * (1 - target) * LENGTHS_US[length]
