"""A report sums the coarsest windows that make up its period, and no window beyond it."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse import periods
from lakehouse.lake import Lake
from lakehouse.report.gather import Gold

NO_SPARK: Any = None


@pytest.mark.parametrize(
    ("start", "end", "grain"),
    [
        ("2026-11-09", "2026-11-16", "1w"),
        ("2026-11-09", "2026-11-23", "1w"),
        ("2026-11-10", "2026-11-17", "1d"),  # a Tuesday
        ("2026-11-09", "2026-11-15", "1d"),
        ("2026-11-09", "2026-11-16T01:00", "1h"),
        ("2026-11-09T10:00", "2026-11-09T12:00", "1h"),
        ("2026-11-09T10:00", "2026-11-09T12:05", "5m"),
        ("2026-11-09T10:55", "2026-11-10T00:00", "5m"),
    ],
)
def test_the_coarsest_grain_that_fits(start: str, end: str, grain: str) -> None:
    gold = Gold(NO_SPARK, Lake("lake"), "cluster", periods.span(start, end), 300)
    assert gold.whole_grain == grain


def test_the_finest_grain_is_that_of_gold() -> None:
    period = periods.span("2026-11-09T10:00:30", "2026-11-09T10:01")
    assert Gold(NO_SPARK, Lake("lake"), "cluster", period, 30).whole_grain == "30s"
