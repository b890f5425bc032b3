"""For how long a budget surely burnt too fast, looked at again at every edge of a window.

Only bad time that is certain counts, against the whole of each length: it burnt so long at least.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from lakehouse import tally
from lakehouse.burn import LENGTHS_US, PAIRS
from lakehouse.statement import WHOLE, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.burn import Pair
    from lakehouse.gold_rows import GoldRows
    from lakehouse.spans import Span
    from lakehouse.statement import Asked, Living, Statement
    from lakehouse.tally import Bad

_LOOKED_AT: Final = 20
"""Subjects of each objective: each brings as many rows as it was bad in."""


def with_burnt(
    gold: GoldRows,
    stated: Sequence[Statement],
    asked: Sequence[Asked],
    living: Sequence[Living],
) -> list[Statement]:
    """The same statements; whose budget could have burnt is looked at window by window.

    Args:
        gold: Where gold is.
        stated: Statements with alerts.
        asked: What was asked.
        living: All of whom, and when they existed.
    """
    found = {key_of(one): one for one in stated}
    for one in asked:
        ranges = one.ranges(gold.window_us)
        pairs = [pair for pair in PAIRS if {pair.long, pair.short} <= ranges.keys()]
        worst = _worst(stated, one, pairs)
        # Of a window that is longer than gold keeps its finest rows, nothing is told of it.
        if not worst or not gold.are_kept(one.period.start.date()):
            continue
        keys = [key_of(own) for own in worst]
        bad = tally.bad(gold, one, living, keys)
        for key, own in zip(keys, worst, strict=True):
            looked_at = bad.get(key, [])
            found[key] = _burnt(own, pairs, looked_at, one.size_us(gold.window_us), ranges[WHOLE])
    return list(found.values())


def _worst(stated: Sequence[Statement], asked: Asked, pairs: Sequence[Pair]) -> list[Statement]:
    """Those of each objective that were bad for longest, if it is enough for any pair to burn."""
    found: list[Statement] = []
    # Clusters and partitions, which are made of topics, have no burn rates.
    of_subjects = (one for one in asked.objectives if one.kind == one.level)
    for objective in of_subjects if pairs else ():
        least = least_us(pairs, objective.target)
        own = [
            one
            for one in stated
            if one.objective.name == objective.name and one.times.bad_low_us >= least
        ]
        found += sorted(own, key=lambda one: -one.times.bad_low_us)[:_LOOKED_AT]
    return found


def _burnt(
    own: Statement, pairs: Sequence[Pair], bad: Sequence[Bad], size_us: int, span: Span
) -> Statement:
    target = own.objective.target
    alerts = (
        replace(one, burnt_us=burnt_us(bad, size_us, span, one.pair, target))
        if one.pair in pairs
        else one
        for one in own.alerts
    )
    return replace(own, alerts=tuple(alerts))


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
