"""Ends of buckets of gold/distributions, which is OpenTelemetry's exponential histogram."""

from __future__ import annotations

import math
from typing import Final

# Every 16th end of gold/distributions (scale 6): the ends of scale 2.
_PER_DOUBLING: Final = 4
_SLACK: Final = 1e-7  # as kernel/sql/distributions.sql has it: powers of two are ends everywhere


def bucket_end(value: int) -> int:
    """A whole number rounded up, by less than a fifth, to the greatest one of a coarse bucket.

    The bucket ends where one of gold/distributions does. What is not above 0 is 0.
    """
    if value <= 0:
        return 0
    bucket = math.ceil(math.log2(value) * _PER_DOUBLING - _SLACK)
    return max(value, math.floor(2 ** (bucket / _PER_DOUBLING)))
