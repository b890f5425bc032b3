from __future__ import annotations

import datetime as dt

import pytest

from lakehouse.core import periods
from lakehouse.errors import PeriodError


def test_an_iso_week_starts_on_monday_utc():
    week = periods.week("2026-W47")
    assert week.start == dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
    assert (week.end - week.start, week.grain) == (dt.timedelta(days=7), "1w")
    assert periods.week_of(week.end - dt.timedelta(microseconds=1)) == week


def _utc(text):
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("first", "last", "now", "week"),
    [
        ("2026-09-01", "2026-11-23T06:25", "2026-11-23T06:30", "2026-W47"),  # the weekly job's hour
        ("2026-09-01", "2026-11-22T23:58", "2026-11-23T00:05", "2026-W47"),
        ("2026-09-01", "2026-11-23", "2026-11-23", "2026-W47"),
        ("2026-11-22T23:00", "2026-11-25", "2026-11-25", "2026-W47"),
        ("2026-11-23", "2026-11-25", "2026-11-25", "2026-W48"),  # a lake's first week
        ("2026-09-01", "2026-10-07", "2026-11-25", "2026-W41"),  # nobody delivers any more
    ],
)
def test_the_week_of_a_weekly_report_is_the_last_that_has_ended(first, last, now, week):
    told = periods.last_ended(_utc(first), _utc(last), _utc(now))
    assert periods.week_name(told) == week


def test_a_week_ends_at_midnight_of_its_time_zone():
    zone = periods.time_zone("Asia/Tokyo")  # Monday begins there on Sunday at 15:00
    seen = _utc("2026-09-01"), _utc("2026-11-22T15:30")
    before, after = (
        periods.week_name(periods.last_ended(*seen, _utc(now), zone), zone)
        for now in ("2026-11-22T14:59", "2026-11-22T15:30")
    )
    assert (before, after) == ("2026-W47", "2026-W47")
    assert periods.week_name(periods.last_ended(*seen, seen[1])) == "2026-W46"


@pytest.mark.parametrize("text", ["2026-47", "2026-W54", "2026-W00", "last"])
def test_no_such_week_is_an_error(text):
    with pytest.raises(PeriodError, match="ISO week"):
        periods.week(text)


def test_a_span_is_widened_to_whole_windows():
    span = periods.span("2026-11-16T10:00:07Z", "2026-11-16T11:04:00+01:00").aligned(30)
    assert span.start == dt.datetime(2026, 11, 16, 10, 0, tzinfo=dt.UTC)
    assert span.end == dt.datetime(2026, 11, 16, 10, 4, tzinfo=dt.UTC)


def test_a_span_that_ends_before_it_starts_is_an_error():
    with pytest.raises(PeriodError, match="not after"):
        periods.span("2026-11-16T10:00:00", "2026-11-16T10:00:00")


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("5m", 300), ("1h", 3600)])
def test_windows_by_name(text, seconds):
    assert periods.window_seconds(text) == seconds
    assert periods.window_name(seconds) == text


@pytest.mark.parametrize("text", ["7m", "0s", "2h", "5", "m"])
def test_a_window_divides_an_hour(text):
    with pytest.raises(PeriodError, match="part of an hour"):
        periods.window_seconds(text)
