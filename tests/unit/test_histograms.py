"""The buckets and percentiles of gold/distributions, told in plain Python, against exact ones."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies as st

from tests.exponential_histogram import bucket_of, percentile, value_of

if TYPE_CHECKING:
    from tests.exponential_histogram import Timed

pytestmark = pytest.mark.slow

AMOUNTS = st.floats(1e-11, 1e18) | st.sampled_from([1e-11, 1.0, 2.0, 1024.0, 0.5, 1e18])
VALUES = AMOUNTS | AMOUNTS.map(lambda value: -value) | st.just(0.0)
TIMED = st.lists(st.tuples(VALUES, st.integers(1, 10**13)), min_size=1, max_size=60)
SHARES = st.sampled_from([0, 0.01, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1])


def exact(timed: Timed, q: float) -> float:
    """The least value for which the time at or below it is at least a share of all time."""
    wanted = Fraction(str(q)) * sum(us for _, us in timed)
    so_far = 0
    for value, us in sorted(timed):
        so_far += us
        if so_far >= wanted:
            return value
    raise AssertionError


@settings(max_examples=300)
@given(TIMED, SHARES)
def test_a_percentile_is_within_one_percent_of_the_exact_one(timed: Timed, q: float):
    assert percentile(timed, q) == pytest.approx(exact(timed, q), rel=0.01, abs=1e-12)


@settings(max_examples=300)
@given(TIMED, TIMED, SHARES)
def test_sums_of_two_distributions_are_the_distribution_of_both(one: Timed, other: Timed, q: float):
    both = [*one, *other]
    assert percentile(both, q) == pytest.approx(exact(both, q), rel=0.01, abs=1e-12)


@settings(max_examples=300)
@given(VALUES, st.integers(1, 10**15))
def test_one_value_has_the_same_percentiles_everywhere(value: float, us: int):
    assert len({percentile([(value, us)], q) for q in (0, 0.5, 0.999, 1)}) == 1


@settings(max_examples=300)
@given(AMOUNTS)
def test_a_bucket_holds_what_opentelemetry_says(value: float):
    base = 2 ** (2**-6)
    _, bucket = bucket_of(value)
    assert base**bucket * (1 - 1e-12) < value <= base ** (bucket + 1) * (1 + 1e-7)
    assert base**bucket < value_of(1, bucket) < base ** (bucket + 1)


@pytest.mark.parametrize("power", range(-36, 60))
def test_powers_of_two_are_the_upper_ends_of_their_buckets(power: int):
    assert bucket_of(2.0**power) == (1, power * 64 - 1)


def test_next_to_nothing_is_zero():
    assert bucket_of(1e-12) == bucket_of(-1e-12) == bucket_of(0.0) == (0, 0)
    assert bucket_of(1e-300) == (0, 0)
