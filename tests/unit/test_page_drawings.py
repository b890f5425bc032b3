"""The drawings of the page: one scale for all budgets, hatching for what is not known."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from lakehouse.core import display
from lakehouse.core.periods import micros
from lakehouse.report.page import svg, week_lanes
from lakehouse.report.page.svg import Axis, ticks_of
from lakehouse.report.summary.objective_rows import Week
from tests import page_weeks
from tests.page_reader import Node, read

HOUR = 3_600_000_000
EVIL = '"><script>alert(1)</script>'


def drawn(markup: str) -> Node:
    return read(markup).one("svg")


def widths(drawing: Node) -> dict[str, tuple[float, float]]:
    """Start and width of each part of a bar, percent of its width."""
    return {
        one.attributes["class"]: tuple(
            float(one.attributes.get(key, "0%").rstrip("%")) for key in ("x", "width")
        )
        for one in drawing.all("rect")
    }


def test_a_budget_is_grey_up_to_all_of_it_and_red_beyond():
    parts = widths(drawn(svg.budget_bar(2.38, 2.2, 2.6, "238 %")))
    assert parts["spent"] == pytest.approx((0, 33.33), abs=0.01)
    assert parts["over"] == pytest.approx((33.33, 46), abs=0.01)
    assert parts["perhaps"] == pytest.approx((79.33, 7.33), abs=0.01)


def test_all_bars_have_the_same_scale_and_never_leave_it():
    numbers = random.Random(44)
    for _ in range(200):
        low, used, high = sorted(numbers.choice((1, 20)) * numbers.random() for _ in range(3))
        bar = drawn(svg.budget_bar(used, low, high, "used"))
        assert {one.attributes["x1"] for one in bar.all("line")} == {"33.33%"}
        parts = widths(bar)
        ends = [start + width for start, width in parts.values()]
        assert max(ends) <= 100.01
        red = parts["spent"][1] + parts.get("over", (0, 0))[1]
        assert red == pytest.approx(100 * min(3, used) / 3, abs=0.02)
        assert bool(list(bar.all("svg"))) == (used > 3), "chevrons: the bar goes on"


def test_a_budget_that_is_not_known_is_hatched_and_never_grey():
    assert widths(drawn(svg.budget_bar(None, None, None)))["perhaps"] == (0, 100)
    parts = widths(drawn(svg.budget_bar(None, 0.06, 0.94)))
    assert parts["spent"] == pytest.approx((0, 2), abs=0.01)
    assert parts["perhaps"] == pytest.approx((2, 29.33), abs=0.01)


def test_what_is_left_of_a_budget_ends_where_the_figures_end():
    drawing = drawn(svg.burn_down((1.0, 0.5, -0.25), 168))
    positive, negative = (one.attributes["d"] for one in drawing.all("path"))
    assert positive == "M0 15H0V1H1V8H2V15H3V15z"
    assert negative.endswith("H2V18.5H3V15z")
    assert drawing.attributes["aria-label"] == "Error budget left at the end: -25 percent"


def test_a_status_of_a_week_is_a_shape_and_a_word():
    drawing = drawn(svg.eight_weeks(page_weeks.weeks("m-u")))
    assert drawing.attributes["aria-label"] == "W40 missed, W41 no data, W42 uncertain"
    squares = list(drawing.all("rect"))
    assert [one.attributes["class"] for one in squares] == ["missed", "no_data", "uncertain"]
    assert len(list(drawing.all("path"))) == 1, "only a missed week has a cross"
    assert float(squares[-1].attributes["x"]) == 17 * 7 + 1, "this week is on the right"
    assert len(list(drawn(svg.eight_weeks(page_weeks.weeks("n" * 12))).all("rect"))) == 8


def test_a_week_that_is_not_known_is_an_outline_and_not_zero():
    drawing = drawn(svg.trend((None, 0.0, 2.0, 4.0), "trend"))
    kinds = [one.attributes.get("class") for one in drawing.all("rect")]
    heights = [float(one.attributes["height"]) for one in drawing.all("rect")]
    assert kinds == ["hole", None, None, "now"]
    assert heights[1:] == [1, 13.5, 27]
    drawn(svg.trend((None, 0.0), "only zero"))


def test_events_have_their_number_once_a_day_and_stay_apart():
    axis = Axis(page_weeks.bad_week().span)
    strip = drawn(svg.strip(page_weeks.EVENTS, (), (), axis, axis.within[1]))
    numbers = [one.text for one in strip.all("text", class_="num")]
    assert sorted(numbers) == sorted([*"1345", *"67", *"2222222"])
    places = [float(one.attributes["cx"].rstrip("%")) for one in strip.all("circle")]
    assert all(right - left >= 1.59 for left, right in pairwise(places))
    assert 0 < min(places) < max(places) < 100
    assert strip.attributes["aria-hidden"] == "true", "the cards say the same"


def test_many_events_without_a_card_are_drawn_in_bounded_space():
    axis = Axis(page_weeks.bad_week().span)
    start = axis.within[0]
    flaps = tuple((start + n * 60_000_000, start + n * 60_000_000 + 1) for n in range(9_000))
    rest = [page_weeks.EVENTS[0]._replace(parts=flaps)] * 5
    strip = svg.strip((), rest, (), axis, axis.within[1])
    assert len(strip) < 100_000
    assert "circle" not in strip


def test_time_to_come_is_hatched():
    axis = Axis(page_weeks.bad_week().span)
    to = axis.within[0] + 136 * HOUR
    strip = drawn(svg.strip((), (), (), axis, to))
    (hatched,) = strip.all("rect", class_="perhaps")
    assert hatched.attributes["x"] == "80.95%"
    assert "to come" in strip.text


def of_facts(**more: object) -> tuple[list[week_lanes.Lane], week_lanes.Steps]:
    facts = page_weeks.facts(**more)
    steps = week_lanes.steps_of(facts, micros(page_weeks.END))
    return week_lanes.lanes_of(facts, steps), steps


def test_a_lane_has_the_bad_minutes_of_each_hour():
    found, steps = of_facts()
    by_name = {lane.spec.name: lane for lane in found}
    assert list(by_name) == [
        "Unavailable", "Clients throttled", "Messages lost unread", "Waiting for upload",
        "Read from tiered storage", "Not observed",
    ]  # fmt: skip
    assert len(steps.spans) == 168
    known = {nth: one.value for nth, one in enumerate(by_name["Unavailable"].buckets) if one.value}
    minutes = {hour: value / 60_000_000 for hour, value in known.items()}
    assert minutes == {24 + 5: 5, 48 + 14: 20, 72 + 15: 7}
    assert by_name["Clients throttled"].highest.replace("\u00a0", " ").startswith("highest 49 m")


def test_an_hour_that_was_not_read_is_not_known_unless_something_was_found_in_it():
    found, _ = of_facts()
    by_name = {lane.spec.name: lane for lane in found}
    assert by_name["Unavailable"].buckets[88].value is None
    assert by_name["Not observed"].buckets[88].value is None
    bad = {"number": 1, "kind": "availability", "parts": [
        {"start": "2026-11-19T16:10:00Z", "end": "2026-11-19T16:20:00Z"}]}  # fmt: skip
    found, _ = of_facts(events=[bad])
    assert found[0].buckets[88].value == 10 * 60_000_000


def test_lanes_of_several_subjects_are_a_sum_or_a_maximum_and_never_a_mean():
    rows = [
        {"name": name, "unit": "x", "subject": subject, "points": page_weeks.points({7: value})}
        for name in ("lost_offsets", "consumer_lag")
        for subject, value in (("a", 3.0), ("b", 9.0))
    ]
    coverage = page_weeks.facts()["timelines"][-1]
    found, _ = of_facts(events=[], timelines=[*rows, coverage])
    values = {lane.spec.name: lane.buckets[7].value for lane in found}
    assert (values["Messages lost unread"], values["Consumer lag"]) == (12.0, 9.0)
    highest = {lane.spec.name: lane.highest.replace("\u00a0", " ") for lane in found}
    assert highest["Messages lost unread"] == "highest 12 messages"
    assert highest["Consumer lag"] == "up to 9 records"


def test_a_null_of_one_subject_hides_a_quiet_hour_and_keeps_a_bad_one():
    rows = [
        {"name": "lost_offsets", "unit": "x", "subject": subject, "points": points}
        for subject, points in (
            ("a", page_weeks.points({7: 3.0})),
            ("b", page_weeks.points({7: None, 8: None})),
        )
    ]
    found, _ = of_facts(events=[], timelines=[*rows, page_weeks.facts()["timelines"][-1]])
    assert [found[0].buckets[hour].value for hour in (6, 7, 8)] == [0.0, 3.0, None]


def test_a_longer_period_has_longer_bars():
    end = page_weeks.START + timedelta(days=28)
    facts = page_weeks.facts(to=end.isoformat(), events=[])
    facts["timelines"] = [{"name": "coverage", "unit": "%", "subject": None,
                           "points": page_weeks.points({}, 100.0, 28 * 24)}]  # fmt: skip
    steps = week_lanes.steps_of(facts, micros(end))
    assert len(steps.spans) == 168
    assert steps.words == "4 hours"


def test_lanes_are_one_drawing_with_a_name_and_numbered_bands():
    axis, (found, _) = Axis(page_weeks.bad_week().span), of_facts()
    planned = [(axis.within[0], axis.within[0] + HOUR)]
    drawing = drawn(week_lanes.lanes(found, page_weeks.EVENTS, planned, axis, axis.within[1]))
    assert drawing.attributes["aria-label"].startswith("Unavailable: highest 20")
    numbers = [one.text for one in drawing.all("text", class_="num")]
    assert numbers == ["5", "1", "3", "4", "6", "7"], "event 2 recurs, and is in the strip only"
    assert len(list(drawing.all("rect", class_="band"))) == 6 * len(found)
    assert len(list(drawing.all("rect", class_="planned"))) == len(found)
    bands = [one.attributes for one in drawing.all("rect", class_="band")]
    names = [float(one.attributes["y"]) for one in drawing.all("text") if "highest" in one.text]
    assert len(names) == len(found)
    for one in bands:
        top, height = float(one["y"]), float(one["height"])
        assert not any(top < name + 4 and name - 12 < top + height for name in names)
    titles = [one.text for one in drawing.all("title")]
    assert any(title.startswith("Wed 18 Nov 14:00: 20") for title in titles)


def test_text_is_escaped():
    lane = of_facts()[0][0]
    lane = lane._replace(spec=lane.spec._replace(name=EVIL, about=EVIL))
    axis = Axis(page_weeks.bad_week().span)
    for markup in (
        week_lanes.lanes([lane], (), (), axis, axis.within[1]),
        svg.budget_bar(1, 1, 1, EVIL),
        svg.eight_weeks([Week(EVIL, "met")]),
    ):
        assert "<script" not in markup
        assert not list(read(markup).all("script"))


@pytest.mark.parametrize(
    ("zone", "start", "days", "labels"),
    [
        ("UTC", datetime(2026, 11, 16, tzinfo=UTC), 7, ["Mon 16", "Tue 17"]),
        ("Europe/Berlin", datetime(2026, 10, 18, 22, tzinfo=UTC), 7, ["Mon 19", "Tue 20"]),
        ("UTC", datetime(2026, 11, 16, 10, tzinfo=UTC), 0.02, ["10:00", "10:05"]),
    ],
)
def test_ticks_are_round_in_the_zone_that_is_shown(
    zone: str, start: datetime, days: float, labels: list[str]
):
    end = start + timedelta(days=days)
    with display.shown_in(display.zone_of({"time_zone": zone})):
        ticks = ticks_of((micros(start), micros(end)), 8)
    assert [label for _, label in ticks][:2] == labels


def test_a_day_of_25_hours_has_its_own_length():
    start = datetime(2026, 10, 18, 22, tzinfo=UTC)
    end = datetime(2026, 10, 25, 23, tzinfo=UTC)
    with display.shown_in(display.zone_of({"time_zone": "Europe/Berlin"})):
        ticks = ticks_of((micros(start), micros(end)), 8)
    lengths = [(later - at) / HOUR for (at, _), (later, _) in pairwise(ticks)]
    assert lengths == [24] * 6 + [25]
