"""Time zones and business hours: which instants they are, also where summer begins and ends."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from lakehouse.core import display, periods
from lakehouse.errors import PeriodError
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.verdicts import outside
from lakehouse.report.facts.sections.timelines import window_seconds
from lakehouse.report.page.svg import ticks_of
from lakehouse.slo.report_calendar import parse_business_hours

if TYPE_CHECKING:
    from collections.abc import Sequence

BERLIN = periods.time_zone("Europe/Berlin")
HOUR = dt.timedelta(hours=1)


def told(spans: Sequence[periods.Period]) -> list[str]:
    return [f"{one.start:%a %d %H:%M} {(one.end - one.start) // HOUR}h" for one in spans]


@pytest.mark.parametrize(
    "name", ["Europe/Atlantis", "", "../../etc/passwd", "Europe", "\x00", "UTC "]
)
def test_no_such_zone_is_one_line(name: str):
    with pytest.raises(PeriodError, match="Use one such as Europe/Berlin") as caught:
        periods.time_zone(name)
    assert "\n" not in str(caught.value)


def test_a_week_of_berlin_begins_and_ends_at_its_own_midnight():
    week = periods.week("2026-W47", BERLIN)
    assert week.start == dt.datetime(2026, 11, 15, 23, tzinfo=dt.UTC)
    assert week.end == dt.datetime(2026, 11, 22, 23, tzinfo=dt.UTC)
    assert week.grain == "1w"
    assert periods.week_of(week.start, BERLIN) == week
    assert periods.week_name(week, BERLIN) == "2026-W47"
    assert periods.week_name(week) is None


@pytest.mark.parametrize(("week", "hours"), [("2026-W13", 167), ("2026-W43", 169)])
def test_the_week_in_which_the_clock_is_set_has_its_true_length(week: str, hours: int):
    found = periods.week(week, BERLIN)
    assert found.end - found.start == dt.timedelta(hours=hours)


def test_an_instant_without_an_offset_is_of_the_zone():
    span = periods.span("2026-07-01T10:00", "2026-07-01T10:00Z", BERLIN)
    assert (span.start.hour, span.end.hour) == (8, 10)


def test_business_hours_of_a_week():
    week = periods.week("2026-W47", BERLIN)
    hours = parse_business_hours("Mon-Fri 08:00-18:00,  Sat 09:00-13:00")
    assert hours.text == "Mon-Fri 08:00-18:00, Sat 09:00-13:00"
    assert told(hours.within(week, BERLIN)) == [
        "Mon 16 07:00 10h", "Tue 17 07:00 10h", "Wed 18 07:00 10h", "Thu 19 07:00 10h",
        "Fri 20 07:00 10h", "Sat 21 08:00 4h",
    ]  # fmt: skip


def test_hours_over_midnight_come_from_the_day_before_and_are_cut_at_the_period():
    day = periods.span("2026-11-17T00:00Z", "2026-11-18T00:00Z")
    hours = parse_business_hours("Mon-Tue 22:00-06:00")
    assert told(hours.within(day, dt.UTC)) == ["Tue 17 00:00 6h", "Tue 17 22:00 2h"]


def test_hours_that_overlap_or_touch_are_one():
    day = periods.span("2026-11-17T00:00Z", "2026-11-18T00:00Z")
    hours = parse_business_hours("Tue 08:00-12:00, Tue 12:00-14:00, Mon-Sun 13:00-15:00")
    assert told(hours.within(day, dt.UTC)) == ["Tue 17 08:00 7h"]


@pytest.mark.parametrize(("day", "length"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_a_whole_day_has_the_hours_it_has(day: str, length: int):
    date = dt.date.fromisoformat(day)
    start, end = (periods.wall(date + dt.timedelta(days=n), dt.time(), BERLIN) for n in (0, 1))
    (whole,) = parse_business_hours("Mon-Sun 00:00-24:00").within(
        periods.Period(start, end), BERLIN
    )
    assert (whole.end - whole.start) // HOUR == length


def test_days_go_round_the_week():
    (rule,) = parse_business_hours("Sat-Mon 08:00-09:00").rules
    assert rule.days == {5, 6, 0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "always",
        "Mon-Fri",
        "Mon-Fri 8-18",
        "Mo 08:00-18:00",
        "Mon 08:00-24:30",
        "Mon 25:00-26:00",
    ],
)
def test_hours_that_are_none_are_one_line(text: str):
    with pytest.raises(PeriodError, match="business hours"):
        parse_business_hours(text)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=8),
    st.sampled_from(["Mon-Sun 00:00-24:00", "Mon-Fri 08:00-18:00", "Sat 22:00-04:00"]),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"]),
)
def test_no_instant_counts_twice(spans: list[tuple[int, int]], text: str, zone: str):
    week = periods.week("2026-W43", periods.time_zone(zone))
    found = parse_business_hours(text).within(week, periods.time_zone(zone))
    counted = sum((one.end - one.start for one in found), dt.timedelta())
    assert counted <= week.end - week.start
    assert all(a.end < b.start for a, b in itertools.pairwise(found))
    given_ = sorted((week.start + a * HOUR, week.start + (a + b) * HOUR) for a, b in spans)
    rest = outside([periods.Period(*one) for one in given_], week)
    assert all(a.end_us <= b.start_us for a, b in itertools.pairwise(rest))
    covered = {one for a, b in given_ for one in _hours(a, b)}
    ends = [(periods.instant(one.start_us), periods.instant(one.end_us)) for one in rest]
    assert {one for a, b in ends for one in _hours(a, b)} == set(
        _hours(week.start, week.end)
    ) - covered


def _hours(start: dt.datetime, end: dt.datetime) -> list[dt.datetime]:
    return [start + HOUR * n for n in range((end - start) // HOUR)]


def test_what_does_not_count_is_all_of_the_period_but_business_hours():
    week = periods.week("2026-W47")
    hours = parse_business_hours("Mon-Fri 08:00-18:00").within(week, dt.UTC)
    rest = [(one.start_us, one.end_us) for one in outside(hours, week)]
    assert len(rest) == 6, "four nights, a morning and an evening with the weekend"
    assert sum(end - start for start, end in rest) == (168 - 50) * 3600 * 1_000_000
    inside = [(periods.micros(one.start), periods.micros(one.end)) for one in hours]
    edges = sorted([*rest, *inside])
    assert all(a[1] == b[0] for a, b in itertools.pairwise(edges))
    assert (edges[0][0], edges[-1][1]) == (periods.micros(week.start), periods.micros(week.end))


def test_without_business_hours_nothing_counts():
    week = periods.week("2026-W47")
    (all_,) = outside([], week)
    assert all_.overlaps(week)
    assert (all_.start_us, all_.end_us) == week.span


def test_instants_are_said_in_the_zone_and_which_one_where_the_clock_shows_it_twice():
    with display.shown_in(BERLIN):
        assert display.day_and_time("2026-07-01T10:00:00Z") == "Wed 1 Jul 12:00:00".replace(
            " ", "\xa0"
        )
        both = [display.day_and_time(f"2026-10-25T0{hour}:30:00Z") for hour in (0, 1)]
        assert [one.split("\xa0", 3)[3] for one in both] == ["02:30:00\xa0CEST", "02:30:00\xa0CET"]
    assert display.day_and_time("2026-07-01T10:00:00Z").endswith("10:00:00"), "UTC again"


def test_marks_of_the_axis_are_round_by_the_clock_that_is_shown():
    week = periods.week("2026-W43", BERLIN)
    with display.shown_in(BERLIN):
        days = ticks_of((periods.micros(week.start), periods.micros(week.end)), 9)
        assert [label for _, label in days] == [
            "Mon 19",
            "Tue 20",
            "Wed 21",
            "Thu 22",
            "Fri 23",
            "Sat 24",
            "Sun 25",
            "Mon 26",
        ]
        assert {display.local(periods.instant(tick)).hour for tick, _ in days} == {0}
        night = periods.micros(periods.wall(dt.date(2026, 10, 25), dt.time(), BERLIN))
        hours = ticks_of((night, night + 8 * periods.HOUR_US), 9)
        assert [label for _, label in hours] == [f"0{n}:00" for n in range(8)]
        assert len({b - a for (a, _), (b, _) in itertools.pairwise(hours)}) == 2
    with display.shown_in(periods.time_zone("Asia/Kolkata")):
        ticks = ticks_of((night, night + 8 * periods.HOUR_US), 9)
        assert all(label.endswith(":00") for _, label in ticks)


@given(st.integers(1, 200_000), st.sampled_from([5, 9]))
def test_there_is_room_for_all_marks(minutes: int, most: int):
    start = periods.micros(dt.datetime(2026, 10, 20, 3, 7, tzinfo=dt.UTC))
    within = (start, start + minutes * 60_000_000)
    found = ticks_of(within, most)
    assert len(found) <= most + 1
    assert all(within[0] <= tick <= within[1] for tick, _ in found)


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        ("2026-11-15T23:00Z", "2026-11-22T23:00Z", 3600),
        ("2026-11-15T18:30Z", "2026-11-22T18:30Z", 300),  # a week of Kolkata
        ("2026-11-15T00:00Z", "2026-12-15T00:00Z", 86_400),
        ("2026-11-15T23:00Z", "2026-12-15T23:00Z", 3600),
        ("2026-11-15T00:00Z", "2026-11-16T00:00Z", 300),
    ],
)
def test_a_drawing_is_made_of_whole_windows(start: str, end: str, seconds: int):
    no_engine: Any = None
    assert window_seconds(Gold(no_engine, "c", periods.span(start, end), 300)) == seconds
