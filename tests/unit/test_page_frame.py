"""The page as every reader meets it: its words, its links, and what gets into it from outside."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.core import display
from lakehouse.report.figures import name
from lakehouse.report.page import page as page_file
from lakehouse.report.summary.opening import Headline
from tests import page_weeks
from tests.hostile.values import NAMES
from tests.page_reader import Node, read

if TYPE_CHECKING:
    from lakehouse.report.summary.summarize import Summary

ODD = {
    **NAMES,
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "kafka-longest": "n" * 249,
    "hebrew": "\u05d0\u05d1\u05d2 \u0627\u0644\u0639",
    "quotes": "\"'`&amp;<>",
}
WEEKS = {
    "bad": page_weeks.bad_week,
    "running": page_weeks.running_week,
    "uncertain": page_weeks.uncertain_week,
    "blind": page_weeks.blind_week,
    "fleet": page_weeks.fleet,
    "quiet": lambda: page_weeks.bad_week(
        headline=Headline("met", "All 5 objectives met", ""), events=(), lead=(),
        objectives=page_weeks.OBJECTIVES[4:], notes=(), not_collected=(),
    ),
    "without-objectives": lambda: page_weeks.bad_week(objectives=(), objectives_note=""),
    "without-names": lambda: page_weeks.bad_week(week="", has_owners=False),
}  # fmt: skip


def html(summary: Summary, folds: Any = page_weeks.FOLDS, **facts: Any) -> str:
    given = page_weeks.facts(**facts)
    with display.shown_in(display.zone_of(given)):
        return page_file.page(summary, folds, given)


def page(summary: Summary, **facts: Any) -> Node:
    return read(html(summary, **facts))


def words(node: Node) -> str:
    """The text below without drawings, style and script."""
    parts = (
        one if isinstance(one, str) else words(one)
        for one in node.children
        if isinstance(one, str) or one.tag not in {"svg", "style", "script"}
    )
    return " ".join(" ".join(parts).split())


@pytest.fixture(scope="module", params=list(WEEKS))
def week(request: pytest.FixtureRequest) -> Summary:
    return WEEKS[request.param]()


def test_the_headline_is_the_worst_status_and_what_changed():
    heading = page(page_weeks.bad_week()).one("h1")
    assert heading.text == "4 of 9 objectives missed, the same 4 as last week"
    assert heading.one("span", class_="state").attributes["class"] == "state is-missed"


def test_an_objective_has_one_row_one_status_and_one_word(week: Summary):
    rows = [one for one in page(week).all("tr") if one.attributes.get("id", "").startswith("slo-")]
    assert [one.attributes["id"] for one in rows] == [f"slo-{one.name}" for one in week.objectives]
    for row, one in zip(rows, week.objectives, strict=True):
        assert row.one("th").text == one.word
        assert len(list(row.all("span", class_="state"))) == 1
        assert row.one("svg", class_="budget").attributes["aria-label"]


def test_the_limit_of_all_budgets_is_at_one_place(week: Summary):
    lines = page(week).all("line", class_="full")
    assert len({one.attributes["x1"] for one in lines}) <= 1


def test_cards_are_the_events_that_used_half_a_budget_and_the_last_one_has_the_rest():
    cards = list(page(page_weeks.bad_week()).one("ol", class_="cards").all("li", class_="card"))
    assert [one.one("span", class_="n").text for one in cards] == ["1", "2", "3", "4", "5", "6"]
    assert [one.text for one in cards[-1].all("span", class_="n")] == ["6", "7"]
    assert "1,240 % of loss budget" in cards[0].text
    assert cards[0].one("p", class_="foot").one("a").attributes["href"] == "#slo-lost-before-read"
    assert "Cause" in cards[0].text
    assert "Next" not in cards[5].text


def test_many_events_are_five_cards_and_five_lines_and_a_number():
    main = page(page_weeks.fleet()).one("section", id="events")
    assert len(list(main.all("li", class_="card"))) == 6
    assert len(list(main.all("span", class_="n"))) == 10
    assert main.one("a", href="#d-incidents").text == "790 more events in All incidents"
    assert "within budget" not in main.text


def test_a_blind_week_has_no_figure_and_no_quiet_sentence():
    text = page(page_weeks.blind_week()).one("main").one("section", id="events").text
    assert text == "Events Not known: only 0.1 % of this week was observed."
    whole = page(page_weeks.blind_week())
    assert not list(whole.all("ul", class_="tiles"))
    assert not list(whole.all("svg", class_="lanes"))
    assert not re.search(r"\bMet\b|No event|0 events", whole.text.partition("How")[0])


def test_a_running_week_never_says_met():
    whole = page(page_weeks.running_week())
    assert "week running: 81 % elapsed" in whole.one("header").text
    words = {one.one("th").text for one in whole.one("tbody").all("tr")}
    assert words == {"Missed", "At risk", "On track", "No data"}
    assert "to come" in whole.one("svg", class_="strip").text


def test_what_is_not_known_is_neither_zero_nor_drawn():
    whole = page(page_weeks.uncertain_week(), events=None)
    first, second = list(whole.all("a", class_="tile"))[:2]
    assert (first.one("span", class_="value").text, list(first.all("svg"))) == ("not known", [])
    assert second.one("span", class_="value").text == "not collected"
    row = whole.one("tr", id="slo-produce-throttling")
    assert "not known" in row.text
    assert "0 %" not in row.text.replace("99.0 %", "")
    assert "Unavailable" not in whole.one("section", id="week").text


def test_without_owners_there_is_no_column_of_owners():
    assert "Owner" in page(page_weeks.bad_week()).text
    assert "no owner" in page(page_weeks.bad_week()).one("table").text
    without = page(page_weeks.bad_week(has_owners=False, events=()))
    assert not re.search("owner", words(without), re.IGNORECASE)


def test_planned_maintenance_is_a_grey_band_with_its_meaning():
    planned = [{"start": "2026-11-20T02:00:00Z", "end": "2026-11-20T05:00:00Z"}]
    whole = page(page_weeks.bad_week(), maintenance=planned)
    names = [one.text for one in whole.all("text") if "highest" in one.text]
    assert len(list(whole.all("rect", class_="planned"))) == 2 + len(names), "strip, key, lanes"
    assert "planned maintenance" in whole.text
    assert "planned maintenance" not in page(page_weeks.bad_week()).text


def test_a_figure_and_its_unit_stay_on_one_line():
    assert "4\u00a0h\u00a024\u00a0min" in html(page_weeks.bad_week())
    assert display.tied("\u2265 0.2 %") == "\u2265\u00a00.2\u00a0%"
    assert display.tied("up to 9.0 MB/s in 4 h 24 min and 3 topics, 10 % in 5 days") == (
        "up to 9.0\u00a0MB/s in 4\u00a0h\u00a024\u00a0min and 3 topics, 10\u00a0% in 5 days"
    )


def test_every_link_leads_somewhere_and_every_id_is_there_once(week: Summary):
    whole = page(week)
    ids = [one.attributes["id"] for one in whole.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    links = {one.attributes["href"] for one in whole.all("a")}
    assert {link[1:] for link in links} <= set(ids)
    assert all(link.startswith("#") for link in links)
    labels = {one.attributes["aria-labelledby"] for one in whole.all()
              if "aria-labelledby" in one.attributes}  # fmt: skip
    assert labels <= set(ids)


def test_a_link_to_a_fold_leads_into_it_so_that_the_browser_opens_it():
    for fold in page(page_weeks.bad_week()).all("details"):
        assert "id" not in fold.attributes
        assert fold.one("div").attributes["id"].startswith("d-")


def test_without_a_fold_its_links_lead_to_the_objectives():
    links = [one.attributes["href"] for one in read(html(page_weeks.bad_week(), ())).all("a")]
    assert "#d-loss" not in links
    assert "#objectives" in links


def test_nothing_is_styled_inline_fetched_or_unlabelled(week: Summary):
    whole = page(week)
    for one in whole.all():
        assert "style" not in one.attributes
        assert not [key for key in one.attributes if key.startswith("on")]
        assert one.tag not in {"img", "iframe", "link", "object", "form"}
        if one.tag == "svg" and "aria-hidden" not in one.attributes:
            parts = [*whole.all("svg", class_="budget")]
            assert one.attributes.get("aria-label") or any(one in bar.children for bar in parts)
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//|url\((?!#)""", html(week))


def test_the_policy_admits_the_style_and_the_script_and_nothing_else(week: Summary):
    whole = page(week)
    policy = whole.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    for tag in ("style", "script"):
        (one,) = whole.all(tag)
        digest = base64.b64encode(hashlib.sha256(one.raw.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")


def test_no_figure_is_a_number_of_microseconds_and_none_is_plus_minus_zero(week: Summary):
    text = words(page(week))
    assert "\u00b10" not in text
    assert not re.search(r"\b\d{10,}\b", text)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_name_is_text_isolated_and_bounded_wherever_it_is(odd: str):
    made = html(page_weeks.odd_week(odd))
    whole, plain = read(made), read(html(page_weeks.odd_week("plain")))
    assert [one.tag for one in whole.all()] == [one.tag for one in plain.all()]
    shown = name(odd)
    isolated = [one for one in whole.all("bdi") if one.text == " ".join(shown.text.split())]
    assert len(isolated) > 30
    assert {one.attributes.get("title", "") for one in isolated} == {shown.title}
    assert max(len(one.raw) for one in isolated) <= display.NAME_LIMIT
    assert not set("\u202e\u2066\u2069\x00\x1b\x07\x9b") & set(made)


def test_the_page_of_a_fleet_is_bounded():
    assert len(html(page_weeks.fleet())) < 400_000


def test_a_table_of_many_objectives_has_its_met_ones_on_the_second_sheet():
    rows = page_weeks.OBJECTIVES[:4] + page_weeks.OBJECTIVES[4:] * 2
    whole = page(page_weeks.bad_week(objectives=tuple(
        one._replace(name=f"{nth}") for nth, one in enumerate(rows)
    )))  # fmt: skip
    (first,) = whole.all("tr", class_="page-two")
    assert first.attributes["id"] == "slo-4"
    assert not list(page(page_weeks.bad_week()).all("tr", class_="page-two"))


def test_the_page_says_who_made_it_and_when():
    foot = page(page_weeks.bad_week()).one("footer").text
    assert foot.startswith("Made by jmxlake 0.1.0, Sat 28 Nov 17:41:00 UTC.")
