"""Which window an objective is told over when a report is of a week."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, strategies as st

from lakehouse.core import periods
from lakehouse.core.objective import ISO_WEEK, TimeWindow

WEEK = periods.week("2026-W47")  # 16 to 23 November
CALENDAR_MONTH = TimeWindow(1, "M", dt.datetime(2026, 1, 1))  # noqa: DTZ001 - a local time


def told(window: TimeWindow, period: periods.Period = WEEK) -> tuple[str, str, str]:
    found = window.of(period)
    return (f"{found.start:%m-%d %H:%M}", f"{found.end:%m-%d %H:%M}", found.grain)


def calendar(count: int, unit: str, start: str, zone: str = "UTC") -> TimeWindow:
    return TimeWindow(count, unit, dt.datetime.fromisoformat(start), zone)


@pytest.mark.parametrize("days", [7, 28, 30])
def test_a_rolling_window_ends_with_the_period(days: int):
    found = TimeWindow(days, "d", None).of(WEEK)
    assert (found.end, found.end - found.start) == (WEEK.end, dt.timedelta(days=days))
    assert found.grain == f"{days}d"


def test_an_iso_week_is_the_week_itself():
    assert ISO_WEEK.of(WEEK) == WEEK
    assert calendar(1, "w", "2022-01-03 00:00:00").of(WEEK) == WEEK


def test_a_month_is_told_when_it_has_ended_and_else_to_date():
    assert told(CALENDAR_MONTH) == ("11-01 00:00", "12-01 00:00", "1M")
    ends = periods.week("2026-W49")  # 30 November to 7 December
    assert told(CALENDAR_MONTH, ends) == ("11-01 00:00", "12-01 00:00", "1M")
    after = periods.week("2026-W50")
    assert told(CALENDAR_MONTH, after) == ("12-01 00:00", "01-01 00:00", "1M")


def test_a_month_that_ends_with_the_week_is_that_month():
    week = periods.week("2027-W04")  # it ends on Sunday, 31 January
    assert told(CALENDAR_MONTH, week) == ("01-01 00:00", "02-01 00:00", "1M")


def test_weeks_begin_when_their_calendar_says():
    noon = calendar(1, "w", "2022-01-01 12:00:00", "America/New_York")  # a Saturday
    assert told(noon) == ("11-14 17:00", "11-21 17:00", "7d")


def test_a_calendar_goes_by_local_time():
    berlin = calendar(1, "M", "2026-01-01 00:00:00", "Europe/Berlin")
    found = berlin.of(periods.week("2026-W14"))  # 30 March to 6 April
    assert told(berlin, periods.week("2026-W14")) == ("02-28 23:00", "03-31 22:00", "1M")
    assert found.end - found.start == dt.timedelta(days=31) - dt.timedelta(hours=1)


def test_the_last_day_of_short_months():
    window = calendar(1, "M", "2024-01-31 00:00:00")
    assert told(window, periods.week("2025-W10")) == ("02-28 00:00", "03-31 00:00", "1M")


@given(
    st.integers(1, 4),
    st.sampled_from("dwMQY"),
    st.datetimes(dt.datetime(2001, 1, 1), dt.datetime(2040, 1, 1)),  # noqa: DTZ001 - local
    st.sampled_from(("UTC", "America/New_York", "Australia/Lord_Howe")),
    st.integers(0, 2500),
    st.integers(1, 40),
)
def test_windows_follow_one_another_and_the_last_that_ended_is_told(
    count: int, unit: str, anchor: dt.datetime, zone: str, week: int, days: int
):
    window = TimeWindow(count, unit, anchor.replace(microsecond=0, fold=0), zone)
    start = dt.datetime(2000, 1, 3, tzinfo=dt.UTC) + dt.timedelta(weeks=week)
    period = periods.Period(start, start + dt.timedelta(days=days))
    found = window.of(period)
    assert found.start < found.end
    following = window.of(periods.Period(found.end, found.end + dt.timedelta(microseconds=1)))
    assert following.start == found.end
    if found.end > period.end:  # it is under way, for none ended in the period
        assert found.start <= period.start
    else:
        assert period.start < found.end <= period.end < following.end
