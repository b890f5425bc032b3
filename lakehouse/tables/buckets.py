"""The buckets of gold/distributions: OpenTelemetry's exponential histogram of scale 6."""

from __future__ import annotations

import math
from typing import Final

_PER_DOUBLING: Final = 64  # as kernel/sql/distributions.sql has it, with its slack
_SLACK: Final = 1e-6


def bucket_end(value: int) -> int:
    """The greatest whole number in the bucket of a whole number above 0; of others it is 0.

    Rounded up so, a value counts in the same bucket, and is at most 1.1 % above what it was.
    """
    if value <= 0:
        return 0
    bucket = math.ceil(math.log2(value) * _PER_DOUBLING - _SLACK)
    return max(value, math.floor(2 ** (bucket / _PER_DOUBLING)))
