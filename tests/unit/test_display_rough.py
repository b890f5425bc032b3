"""Counts with three digits, rounded outward."""

from __future__ import annotations

import pytest

from lakehouse.core import display


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(131_072, 155_871, "131,000 to 156,000"), (999, 1001, "999 to 1,010"), (7, 8, "7 to 8")],
)
def test_bounds_are_rounded_outward(low: float, high: float, text: str) -> None:
    assert display.rough_between(low, high) == text
