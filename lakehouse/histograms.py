"""Exponential histograms of time: which bucket a value is in, and percentiles of sums of buckets.

The buckets are those of OpenTelemetry's data model at scale 6
(https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram): with
``base = 2^(2^-6)``, about 1.011, bucket ``i`` holds what is above ``base^i`` and up to
``base^(i+1)``; values below zero are a mirror image, and one bucket holds zero and what is nearer
to it than ``ZERO_THRESHOLD``. Where OpenTelemetry counts events, this counts the microseconds for
which a value held; its sum is value times seconds.

A percentile is told as the point of its bucket that lies equally far, relatively, from both ends:
within (base - 1) / (base + 1), 0.55 %, of the exact one. It is no interpolation: a series that held
one value has the same percentiles everywhere.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column

SCALE: Final = 6
"""OpenTelemetry's scale: 2^6 buckets from a value to its double."""

ZERO_THRESHOLD: Final = 1e-12
"""What is no further from zero than this is in the bucket of zero."""

# Logarithms are rounded, on every engine in another way. A value on a bucket's upper end, such as
# every power of two, must be in that bucket everywhere; so ends lie higher by 1 part in 10^8.
_END_SLACK: Final = 1e-6


def sign(value: Column) -> Column:
    """Which side of zero a value is on: 1, -1, or 0 in the bucket of zero."""
    return F.when(F.abs(value) <= ZERO_THRESHOLD, 0).otherwise(F.signum(value)).cast("int")


def bucket(value: Column) -> Column:
    """Index of the bucket of a value's amount; 0 in the bucket of zero."""
    place = F.log2(F.abs(value)) * 2.0**SCALE
    index = F.ceil(place - _END_SLACK) - 1
    return F.when(F.abs(value) <= ZERO_THRESHOLD, 0).otherwise(index).cast("int")


def percentile(q: float, *, us: str = "duration_us") -> Column:
    """A percentile over rows of ``sign``, ``bucket`` and time, as an aggregate.

    Exact is the least value for which the time at or below it is at least ``q`` of all time.
    Every row may be a sum over windows, subjects and clusters; summing by ``sign`` and ``bucket``
    first keeps what one group has to sort below some thousand rows.

    Args:
        q: Which one, from 0 to 1.
        us: Name of the column with the time, bigint.

    Returns:
        A double, within 1 % of the exact one; null where there is no time.

    Raises:
        ValueError: ``q`` is not from 0 to 1.
    """
    return F.expr(percentile_sql(q, us=us))


def percentile_sql(q: float, *, us: str = "duration_us") -> str:
    """The same as text, for plain SQL."""
    if not 0 <= q <= 1:
        raise ValueError(f"q is {q}: a percentile is given as a part of 1, such as 0.99")
    share = f"CAST({Decimal(str(q)):.9f} AS DECIMAL(10, 9))"
    pairs = f"IF(`{us}` > 0, STRUCT({value_sql()} AS value, `{us}` AS us), NULL)"
    # Decimals, so that a percentile which lies just at the end of a bucket's time is not the next.
    return (
        f"aggregate(array_sort(collect_list({pairs})),"
        f" STRUCT(CAST({share} * sum(`{us}`) AS DECIMAL(30, 9)) AS left,"
        " CAST(NULL AS DOUBLE) AS value),"
        " (state, one) -> STRUCT(CAST(state.left - one.us AS DECIMAL(30, 9)) AS left,"
        " coalesce(state.value, IF(state.left <= one.us, one.value, NULL)) AS value),"
        " state -> state.value)"
    )


def value_sql() -> str:
    """The value that stands for a row's bucket, from its ``sign`` and ``bucket``, as SQL."""
    per_double = f"{2**SCALE}D"
    middle = f"2 / (1 + pow(2D, 1 / {per_double})) * pow(2D, (`bucket` + 1) / {per_double})"
    return f"(`sign` * {middle})"
