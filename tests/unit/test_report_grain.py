"""A report sums the hours that make up its period, else windows, and none beyond it."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.core import periods
from lakehouse.engines.gold_reader import is_hourly
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.sections.timelines import window_seconds

NO_ENGINE: Any = None


@pytest.mark.parametrize(
    ("start", "end", "by_hour"),
    [
        ("2026-11-09", "2026-11-16", True),
        ("2026-11-09T10:00", "2026-11-09T12:00", True),
        ("2026-11-09T10:00", "2026-11-09T12:05", False),
        ("2026-11-09T10:55", "2026-11-10T00:00", False),
        ("2026-11-09T00:00+05:30", "2026-11-16T00:00+05:30", False),
    ],
)
def test_a_period_is_made_of_hours_if_both_its_ends_are(
    start: str, end: str, *, by_hour: bool
) -> None:
    assert is_hourly(periods.span(start, end)) is by_hour


@pytest.mark.parametrize(("window", "drawn"), [(30, 300), (300, 300), (450, 450), (3600, 3600)])
def test_a_day_is_drawn_in_five_minutes_where_windows_are_shorter(window: int, drawn: int) -> None:
    day = periods.span("2026-11-09", "2026-11-10")
    assert window_seconds(Gold(NO_ENGINE, "cluster", day, window)) == drawn
