"""The page of a report from its facts: quiet, bad, silent, hostile, and of thousands."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lakehouse.errors import PeriodError
from lakehouse.report.facts.by_owner import add_owners, of_team
from lakehouse.report.page.page import render
from tests import sample_facts
from tests.page_reader import Node, read
from tests.unit.test_owners import loaded

SAMPLES = ("quiet_week", "demo", "silent_week", "hostile", "fleet")
_SILENT = re.compile(r"\bMet\b|all \d+ \w+ met|\b0 \w+ (affected|lagged|throttled)|\b0 s\b")


@pytest.fixture(scope="module")
def html() -> dict[str, str]:
    return {name: render(getattr(sample_facts, name)()) for name in SAMPLES}


@pytest.fixture(scope="module")
def pages(html: dict[str, str]) -> dict[str, Node]:
    return {name: read(page) for name, page in html.items()}


def words(node: Node) -> str:
    """The text below without drawings, style and script."""
    parts = (
        one if isinstance(one, str) else words(one)
        for one in node.children
        if isinstance(one, str) or one.tag not in {"svg", "style", "script"}
    )
    return " ".join(" ".join(parts).split())


def test_the_page_has_its_sections_in_order(pages: dict[str, Node]):
    ids = [one.attributes["id"] for one in pages["demo"].one("main").all("section")]
    assert ids == ["events", "objectives", "week", "details"]
    assert pages["demo"].one("h1").text == "2 of 5 objectives missed"


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_link_leads_somewhere(pages: dict[str, Node], sample: str):
    whole = pages[sample]
    ids = [one.attributes["id"] for one in whole.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    assert {one.attributes["href"].removeprefix("#") for one in whole.all("a")} <= set(ids)


@pytest.mark.parametrize("sample", SAMPLES)
def test_tables_and_drawings_can_be_read_aloud(pages: dict[str, Node], sample: str):
    for table in pages[sample].all("table"):
        assert list(table.all("caption")) or "aria-labelledby" in table.attributes
        heads = list(table.one("thead").all("th"))
        assert all(one.attributes.get("scope") == "col" and one.text for one in heads)
        width = sum(int(one.attributes.get("colspan", 1)) for one in heads)
        for row in table.one("tbody").all("tr"):
            cells = [one for one in row.children if not isinstance(one, str)]
            assert len(cells) == width
            assert cells[0].attributes["scope"] == "row"


def test_a_week_without_data_is_never_shown_as_good(pages: dict[str, Node]):
    silent = words(pages["silent_week"].one("body"))
    assert not _SILENT.search(silent), _SILENT.search(silent)
    assert pages["silent_week"].one("h1").text.startswith("Not known: this period was not observed")
    for row in pages["silent_week"].one("tbody").all("tr"):
        assert "100 %" not in row.text
        assert "not known" in row.text
    assert "Met" in words(pages["quiet_week"])


@pytest.mark.parametrize("fact", [
    "min_isr", "throttling", "tier_lag", "lost_before_read", "consumer_lag", "service",
    "replication", "capacity", "hygiene", "timelines", "changes", "verdicts", "objectives",
    "coverage", "trends", "racks", "events", "incidents", "key_figures",
])  # fmt: skip
def test_a_fact_that_is_not_known_is_neither_zero_nor_an_error(fact: str):
    facts = sample_facts.quiet_week()
    for given in ({**facts, fact: None}, {key: facts[key] for key in facts if key != fact}):
        page = read(render(given))
        assert page.one("h1").text
        assert "None" not in words(page.one("body"))


def test_names_stay_text_and_are_isolated(html: dict[str, str], pages: dict[str, Node]):
    whole = pages["hostile"]
    assert len(list(whole.all("script"))) == len(list(whole.all("style"))) == 1
    for one in whole.all():
        assert not [key for key in one.attributes if key.startswith("on") or key == "style"]
        assert one.tag not in {"img", "iframe", "object", "form", "link"}
    assert any("<script>" in one.text for one in whole.all("bdi"))
    assert not set("\u202e\u2066\x00\x1b") & set(html["hostile"])


def test_the_page_of_a_large_fleet_is_bounded():
    made = render(sample_facts.fleet(5_000, 5_000))
    assert len(made.encode()) < 1_500 * 1024
    assert re.search(r"[\d,]+ more, in [a-z_]+\.csv", words(read(made)))


def test_figures_are_exact_or_have_no_plus_minus(html: dict[str, str], pages: dict[str, Node]):
    for sample in SAMPLES:
        text = words(pages[sample].one("body"))
        assert "\u00b10" not in html[sample]
        assert not re.search(r"\b\d{13,}\b", text)


def test_the_clock_is_of_the_zone_of_the_report():
    facts = sample_facts.demo() | {"time_zone": "Europe/Berlin"}
    whole = read(render(facts))
    assert whole.one("header").one("p").text.endswith("07:00 to 07:06, Europe/Berlin")
    assert "Sat 21 Nov 07:12:00 Europe/Berlin" in whole.one("footer").text
    ticks = {one.text for one in whole.one("svg", class_="lanes").all("text")}
    assert "07:03" in ticks
    assert not {tick for tick in ticks if tick.startswith("06:")}


def test_a_zone_that_does_not_exist_is_one_line():
    with pytest.raises(PeriodError, match="is unknown on this machine"):
        render(sample_facts.demo() | {"time_zone": "<script>"})


def test_a_page_of_a_team_says_whose_it_is_and_has_only_its_own(tmp_path: Any):
    facts = of_team(add_owners(sample_facts.demo(), loaded(tmp_path)), "payments")
    whole = read(render(facts))
    assert "team payments" in whole.one("header").text
    assert "archive" not in words(whole.one("section", id="objectives"))
