"""The page's section on trends: what changed, week by week, and what is to be expected."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.report.charts.charts import Chart, of
from lakehouse.report.charts.event_marks import NONE
from lakehouse.report.page.page import render
from lakehouse.report.page.sections import trends
from tests import sample_facts
from tests.page_reader import Node, read

WEEKS = [f"2026-W{number}" for number in range(35, 48)]
WEEK_US = 604_800 * sample_facts.SECOND


def week(bad: int | None, unknown: int = 0) -> dict[str, Any] | None:
    """A week with so many bad minutes; None: nobody saw anything."""
    if bad is None:
        nothing = {"share": None, "share_low": 0.0, "share_high": 1.0}
        return {"expected_us": WEEK_US, "unknown_us": WEEK_US, **nothing, "bad_us": 0}
    us = bad * sample_facts.MINUTE
    bounds = {"share_low": us / WEEK_US, "share_high": (us + unknown) / WEEK_US}
    bad_us = {"bad_us": us, "bad_low_us": us, "bad_high_us": us}
    return {
        "expected_us": WEEK_US,
        "unknown_us": unknown,
        **bad_us,
        "share": us / WEEK_US,
        **bounds,
    }


def subject(topic: str, bad: list[int | None], verdict: str = "worse", **rest: Any) -> Any:
    return {
        "topic": topic, "user": None, "client_id": None, "group": None, "source": None,
        "weeks": [week(one) for one in bad],
        "change": {"share_low": 0.0, "share_high": 0.1, "p": 1 / 12, "compared": 11,
                   "verdict": verdict},
        "regimes": [], "forecast": [{"share": 0.01, "share_low": 0.001, "share_high": 0.05}] * 4,
        **rest,
    }  # fmt: skip


def facts_of(*subjects: Any, drains: Any = ()) -> dict[str, Any]:
    objective = {"name": "min-isr", "title": "Enough replicas", "target": 0.999, "never_bad": 3}
    return sample_facts.quiet_week() | {
        "trends": {
            "weeks": WEEKS,
            "tested": len(subjects),
            "significant_by_chance": 0.08,
            "forecast_by": "local level (statsmodels)",
            "forecast_level": 0.8,
            "objectives": [{**objective, "subjects": list(subjects)}],
            "drains": list(drains),
        }
    }


def section_of(facts: dict[str, Any]) -> Node:
    return read(render(facts)).one("section", id="trends")


def charts_of(facts: dict[str, Any]) -> list[Chart]:
    section = trends(facts)
    assert section is not None
    return of(section, facts, NONE)


def row_of(section: Node, number: int = 0) -> list[str]:
    row = list(section.one("tbody").all("tr"))[number]
    return [one.text.replace("\u00a0", " ") for one in row.children if not isinstance(one, str)]


def test_a_report_without_trends_has_no_section():
    assert trends(sample_facts.quiet_week()) is None
    assert 'id="trends"' not in render(sample_facts.quiet_week())


def test_the_worst_trend_comes_first_with_its_change_and_what_is_expected():
    section = section_of(facts_of(subject("calm", [1] * 13, "as_usual"),
                                  subject("orders", [5] * 12 + [600])))  # fmt: skip
    assert "1 got worse, and none better" in section.text.replace("\u00a0", " ")
    first, second = row_of(section, 0), row_of(section, 1)
    assert "orders" in first[0]
    assert "5.95 %" in first[2]
    assert first[3] == "worse; by chance 1 week in 12 differs as much"
    assert "1 %" in first[5]
    assert second[3] == "as usual"


def test_a_week_that_nobody_saw_is_said_to_be_unknown_and_drawn_hatched():
    facts = facts_of(subject("orders", [5, None, *[5] * 10, None]))
    section = section_of(facts)
    assert row_of(section)[2] == "not known"
    (chart,) = charts_of(facts)
    assert "Not known for 14 d" in chart.caption.replace("\u00a0", " ")
    assert "fill-unknown" in chart.drawings[0]


def test_weeks_too_few_for_a_drawing_stand_in_the_table_alone():
    facts = facts_of(
        subject("orders", [None] * 11 + [5, 6]), subject("clicks", [None] * 10 + [5] * 3)
    )
    assert ["clicks" in one.caption for one in charts_of(facts)] == [True]
    assert "orders" in section_of(facts).one("table").text


def test_the_forecast_is_drawn_after_the_last_week_and_named_as_such():
    (drawn,) = charts_of(facts_of(subject("orders", [5] * 13)))
    assert "From 23 November on: the forecast." in drawn.caption
    assert "fill-band" in drawn.drawings[0]
    (alone,) = charts_of(facts_of(subject("orders", [5] * 13, forecast=[])))
    assert "forecast" not in alone.caption


def test_a_regime_is_told_with_its_week():
    mark = {"week": "2026-W41", "share_before": 0.001, "share_after": 0.02, "p": 0.0025}
    section = section_of(facts_of(subject("orders", [10] * 6 + [200] * 7, regimes=[mark])))
    assert row_of(section)[4] == "2026-W41: 0.1 % to 2 %"


@pytest.mark.parametrize(
    ("verdict", "said", "gone"),
    [
        ("draining", "draining", "2 h 0 m"),
        ("growing", "growing", "never at this rate"),
        ("standing", "neither for certain", "not known"),
        ("unknown", "too few known hours", "not known"),
    ],
)
def test_a_lag_says_when_it_will_be_gone(verdict, said, gone):
    hours = 3_600 * sample_facts.SECOND
    lag = {
        "topic": "events", "kind": "copy", "last_bytes": 1024.0**3, "verdict": verdict,
        "drained_us": 2 * hours, "drained_low_us": hours, "drained_high_us": 3 * hours,
    }  # fmt: skip
    section = section_of(facts_of(drains=[lag]))
    row = row_of(section)
    assert row[:4] == ["events", "upload", "1.0 GiB", said]
    assert row[4].startswith(gone)


def test_a_lag_that_is_not_known_now_says_so():
    lag = {"topic": "events", "kind": "copy", "last_bytes": None, "verdict": "unknown"}
    assert row_of(section_of(facts_of(drains=[lag])))[2:] == ["not known"] * 3


def test_names_and_weeks_from_outside_are_text():
    evil = "<script>alert(1)</script>\u202e" + "x" * 40_000
    page = render(facts_of(subject(evil, [5] * 13)))
    assert "<script>alert" not in page
    assert len(page) < 400_000
