"""The histogram of gold/distributions in plain Python: the same formulas, of no engine."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

Timed = list[tuple[float, int]]
"""Values, and for how many microseconds each of them held."""


def bucket_of(value: float) -> tuple[int, int]:
    """Sign and index of the bucket of a value."""
    if abs(value) <= 1e-12:
        return 0, 0
    return (1 if value > 0 else -1), math.ceil(math.log2(abs(value)) * 64 - 1e-6) - 1


def value_of(sign: int, bucket: int) -> float:
    """The value that stands for a bucket."""
    return sign * (2 / (1 + 2 ** (1 / 64)) * 2 ** ((bucket + 1) / 64))


def percentile(timed: Timed, q: float) -> float | None:
    """A percentile from the time per bucket; None where there is no time."""
    buckets: Counter[tuple[int, int]] = Counter()
    for value, us in timed:
        buckets[bucket_of(value)] += us
    wanted, so_far = Fraction(str(q)) * buckets.total(), 0
    for value, us in sorted((value_of(*bucket), us) for bucket, us in buckets.items()):
        so_far += us
        if so_far >= wanted:
            return value
    return None
