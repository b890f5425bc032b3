"""Sections of the page that are there only where the facts have them."""

from __future__ import annotations

import pytest

from lakehouse.errors import PeriodError
from lakehouse.report.facts.one_team import of_team
from lakehouse.report.facts.owner_accounts import add_owners
from lakehouse.report.page.page import render
from lakehouse.report.page.page_tables import table
from lakehouse.report.resources import declared
from tests import sample_facts
from tests.page_reader import read
from tests.unit.test_owners import loaded


def with_hours(facts: sample_facts.Facts) -> sample_facts.Facts:
    """The demo, where only the topics were bad in business hours."""
    of_hours = [
        ("min-isr", "Topics can be written to safely", "topic", [
            sample_facts.judged("missed", 100, (30, 20, 40), 0, topic="orders"),
            sample_facts.judged("met", 100, (0, 0, 0), 0, topic="audit-log"),
        ]),
        ("throttling", "Clients are not throttled", "client", [
            sample_facts.judged("met", 100, (0, 0, 0), 0, client_id="bulk-loader"),
        ]),
    ]  # fmt: skip
    pairs = [sample_facts.objective(*one) for one in of_hours]
    facts["business_hours"] = {
        "hours": "Mon-Fri 08:00-18:00",
        "time_zone": "Europe/Berlin",
        "spans": [[facts["from"], facts["to"]]],
        "verdicts": [pair[1] for pair in pairs],
        "objectives": [pair[0] for pair in pairs],
    }
    return facts


def test_business_hours_stand_beside_all_hours():
    page = read(render(with_hours(sample_facts.demo())))
    section = page.one("section", id="business")
    assert "2 objectives: 1 missed and 1 met." in section.one("p", class_="answer").text
    assert "Business hours are Mon-Fri 08:00-18:00, Europe/Berlin" in section.text
    first, second = section.one("tbody").all("tr")
    assert [one.text for one in first.children][:3] == [
        "Topics can be written to safely", "missed", "missed",
    ]  # fmt: skip
    assert [one.text for one in second.children][:3] == [
        "Clients are not throttled", "met", "missed",
    ]  # fmt: skip
    captions = [one.text for one in section.all("caption")]
    assert captions[1:] == ["Topics can be written to safely: every topic"], "met needs no list"


def test_a_period_without_business_hours_says_so():
    facts = with_hours(sample_facts.demo())
    facts["business_hours"]["spans"] = []
    section = read(render(facts)).one("section", id="business")
    assert "No part of this period is in business hours (Mon-Fri 08:00-18:00" in section.text
    assert not list(section.all("table"))


def test_a_team_is_judged_by_its_own_in_business_hours_too(tmp_path):
    facts = add_owners(with_hours(sample_facts.demo()), loaded(tmp_path))
    mine = of_team(facts, "storage")["business_hours"]
    assert [(one["objective"], one["verdict"]) for one in mine["verdicts"]] == [("min-isr", "met")]


def test_the_page_shows_the_clock_of_the_zone_and_says_which_week_is_meant():
    facts = sample_facts.demo() | {
        "time_zone": "Europe/Berlin",
        "week": {"iso": "2026-W47", "time_zone": "Europe/Berlin"},
    }
    page = read(render(facts))
    period = page.one("p", class_="period").text
    assert period == (
        "Saturday 21 November 2026, 07:00 to 07:06 Europe/Berlin "
        "(ISO week 2026-W47 of Europe/Berlin)"
    )
    assert "All times are those of Europe/Berlin" in page.one("section", id="reading").text
    assert "on Sat 21 Nov 07:12:00 Europe/Berlin" in page.one("footer").text
    drawn = {one.text for one in page.one("section", id="throttling").all("text")}
    assert "07:03" in drawn
    assert "06:03" not in drawn
    events = page.one("section", id="events").text
    assert "Sat 21 Nov 07:01:41" in events
    assert "Sat 21 Nov 06:01:41" not in page.one("main").text


def test_a_page_in_utc_says_so():
    page = read(render(sample_facts.demo() | {"week": {"iso": "2026-W47", "time_zone": "UTC"}}))
    assert page.one("p", class_="period").text.endswith("06:06 UTC (ISO week 2026-W47 of UTC)")
    assert "All times are UTC." in page.one("section", id="reading").text


def test_facts_with_a_zone_that_is_none_are_one_line():
    with pytest.raises(PeriodError, match="there is none here"):
        render(sample_facts.demo() | {"time_zone": "<script>"})


def test_every_table_of_page_yaml_can_be_made() -> None:
    for name in declared("page.yaml")["tables"]:
        assert table(name).columns, name
