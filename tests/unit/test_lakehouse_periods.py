from __future__ import annotations

import datetime as dt

import pytest

from lakehouse.core import periods
from lakehouse.errors import PeriodError
from lakehouse.report.facts.kafka.min_isr import join_stretches


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


def piece(start: int, end: int, source: str = "broker-1", **rest: object) -> dict[str, object]:
    return {
        "metric": "kafka.partition.under_min_isr", "topic": "t", "partition": 0, "source": source,
        "start": start, "end": end, "lead_us": 7, "tail_us": 5, **rest,
    }  # fmt: skip


def test_stretches_that_touch_are_one_incident_with_the_outer_edges():
    pieces = [
        piece(0, 30, tail_us=0), piece(30, 40, lead_us=0), piece(35, 60, "broker-2"),
        piece(90, 95),
    ]  # fmt: skip
    first, second = join_stretches(pieces)[("t", 0)]
    assert (first.sources, first.lead_us, first.tail_us) == (
        ["broker-1", "broker-2"],
        7,
        5,
    )
    assert first.end.endswith("00.000060Z")
    assert second.start.endswith("00.000090Z")


def test_a_tail_reaches_back_over_a_cut_when_the_piece_after_it_may_be_over_wholly():
    """Seen last at 20; the hour begins at 30; the scrape at 31 says that it is over."""
    pieces = [piece(0, 30, tail_us=10), piece(30, 31, tail_us=1, lead_us=0)]
    (one,) = join_stretches(pieces)[("t", 0)]
    assert one.tail_us == 11
    beside = piece(10, 31, "broker-2", tail_us=4)
    (one,) = join_stretches([*pieces, beside])[("t", 0)]
    assert one.tail_us == 4


def test_being_leaderless_is_an_incident_of_its_own():
    other = piece(0, 30, metric="kafka.partition.leaderless")
    assert {one.kind for one in join_stretches([piece(0, 30), other])[("t", 0)]} == {
        "leaderless",
        "under_min_isr",
    }
