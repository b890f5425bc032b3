"""Burn rates, planned maintenance, marks of events and racks: what the page shows of each."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from lakehouse.core import display
from lakehouse.report.charts.event_marks import marks_of
from lakehouse.report.charts.tidy_svg import tidy
from lakehouse.report.figures import span_of
from lakehouse.report.page.page import render
from tests import sample_facts
from tests.page_reader import Node, read

pytestmark = pytest.mark.slow

Facts = dict[str, Any]
HOUR = sample_facts.HOUR


def pair(verdict: str, burnt_us: int | None = None, **rest: Any) -> Facts:
    """What the facts say of the lengths 1h and 5m."""
    rate = {"rate": 52.13, "low": 48.1, "high": 60.04}
    return {
        "long": "1h", "short": "5m", "limit": 14.4, "at": "2026-11-21T06:06:00Z",
        "verdict": verdict, "long_rate": rate, "short_rate": dict.fromkeys(rate),
        "burnt_us": burnt_us, **rest,
    }  # fmt: skip


def burning(*pairs: Facts) -> Facts:
    facts = sample_facts.demo()
    for subject, one in zip(facts["objectives"][0]["subjects"], pairs, strict=False):
        subject["burn"] = [one]
    return facts


def planned(**subject: Any) -> Facts:
    """The demo, with maintenance in which the broker was down."""
    facts = sample_facts.demo()
    window = {"start": "2026-11-21T06:01:30Z", "end": "2026-11-21T06:02:30Z",
              "reason": "disks of <broker> 2", "topics": ["orders-*"]}  # fmt: skip
    facts["maintenance"] = [window]
    orders = facts["objectives"][0]["subjects"][0]
    without = {**orders, "expected_us": 300_000_000, "unknown_us": 0, **subject}
    orders |= {"maintenance": [window], "without_maintenance": without}
    return facts


def section(facts: Facts, anchor: str) -> Node:
    return read(render(facts)).one("section", id=anchor)


def rows(found: Node, nth: int = 0) -> list[list[str]]:
    body = list(found.all("tbody"))[nth]
    return [[one.text for one in row.children if not isinstance(one, str)]
            for row in body.all("tr")]  # fmt: skip


def anchors(facts: Facts) -> list[str]:
    return [one.attributes["id"] for one in read(render(facts)).all("section")]


def test_what_changed_stands_between_what_happened_and_the_questions():
    facts = planned() | {"restated": sample_facts.fleet(10, 0)["restated"]}
    facts["objectives"][0]["subjects"][0]["burn"] = [pair("burning")]
    found = anchors(facts)
    changed = ["restated", "burn", "maintenance"]
    assert found[:6] == ["verdict", "happened", *changed, "availability"]


def test_a_budget_that_burns_is_told_first_with_the_bounds_of_its_rates():
    facts = burning(pair("calm", 2 * HOUR), pair("burning", HOUR), pair("uncertain"))
    found = section(facts, "burn")
    assert found.one("p", class_="answer").text == (
        "2 budgets burnt too fast in this period; 1 still did at its end, 1 more perhaps."
    )
    first, second, third = rows(found)
    assert first[0] == "topic single"
    assert first[2:] == [
        "too fast", "14.4\u00d7", "52.1\u00d7 over 1h (48.1\u00d7 to 60\u00d7)", "not known",
        "1 h 0 m",
    ]  # fmt: skip
    assert (second[2], third[2], third[-1]) == ("perhaps too fast", "no longer", "2 h 0 m")


def test_that_no_budget_is_told_to_burn_is_not_told_as_calm():
    assert "burn" not in anchors(sample_facts.demo())


def test_what_burns_for_sure_is_told_apart_from_what_may():
    said = section(burning(pair("uncertain")), "burn").one("p", class_="answer").text
    assert said == "No budget certainly burnt too fast in this period; 1 perhaps at its end."


def test_a_verdict_says_what_it_is_without_maintenance_and_keeps_its_own():
    facts = planned(attainment=0.9995, attainment_low=0.999, attainment_high=1.0, verdict="met")
    page = read(render(facts))
    orders = page.one("li", class_="is-missed")
    assert orders.one("span", class_="badge").text == "missed"
    assert orders.one("p", class_="aside").text == (
        "Without planned maintenance: 99.95 % (99.9 % to 100 %), met."
    )
    found = page.one("section", id="maintenance")
    assert found.one("p", class_="answer").text == (
        "1 window of maintenance was planned. Without it 1 verdict would differ."
    )
    (window,), (subject,) = rows(found), rows(found, 1)
    assert window[2:] == ["1 m 0 s (±0)", "topic orders-*", "disks of <broker> 2"]
    assert subject[2:4] == ["1 m 0 s", "missed"]
    assert subject[5:] == ["met", "99.95 % (99.9 % to 100 %)"]


def test_of_a_subject_that_existed_in_maintenance_alone_nothing_is_left():
    facts = planned()
    facts["objectives"][0]["subjects"][0]["without_maintenance"] = None
    orders = read(render(facts)).one("li", class_="is-missed")
    said = orders.one("p", class_="aside").text
    assert said == "Without planned maintenance no time is left to judge."


def test_events_and_maintenance_are_marked_and_told_in_words():
    page = read(render(planned()))
    chart = next(
        one for one in page.all("figure") if "Clients being throttled" in one.text
    )  # fmt: skip
    assert chart.one("figcaption").text.endswith(
        "Marked above: 1 restart of a broker, 1 change of settings. Shaded: planned maintenance."
    )
    assert len(list(chart.all("path", class_="fill-event"))) == 2 * 2, "wide and narrow"
    assert len(list(chart.all("path", class_="fill-planned"))) == 2
    legend = page.one("section", id="happened").one("figcaption").text
    assert "planned" in legend
    assert "1 leader election" in legend


def test_the_head_says_each_verdict_and_what_changed_and_links_to_both():
    facts = planned()
    facts["objectives"][0]["subjects"][0]["burn"] = [pair("burning", HOUR)]
    page = read(render(facts))
    told = [one.text for one in page.one("header").one("ul", class_="glance").all("li")]
    assert told == [
        "missed Topics can be written to safely, Clients are not throttled",
        "uncertain Tiered storage keeps up",
        "no data Nothing is lost before it is read",
        "met Remote reads succeed",
        "Burn rates 1 budget burnt too fast in this period; 1 still did at its end.",
        "Maintenance 1 window of maintenance was planned. Without it every verdict would be the "
        "same.",
    ]
    titles = {
        one.attributes["id"]: one.one("h3").text for one in page.all("li") if "id" in one.attributes
    }
    for link in page.one("header").one("ul", class_="glance").all("a"):
        anchor = link.attributes["href"][1:]
        assert titles.get(anchor, link.text) == link.text


def test_without_events_nothing_is_marked():
    facts = sample_facts.demo() | {"changes": []}
    assert "fill-event" not in render(facts).partition("</style>")[2]


@pytest.mark.parametrize(("most", "kept"), [(360, 4), (6, 2), (1, 1)])
def test_marks_that_would_cover_one_another_are_one(most: int, kept: int):
    facts = sample_facts.demo()
    start = display.parse(facts["from"])
    facts["changes"] = [
        {"at": (start + timedelta(seconds=s)).isoformat(), "kind": "leader_change"}
        for s in (1, 3, 5, 300)
    ]
    found = marks_of(facts)
    assert len(found.apart(span_of(facts, "from", "to"), most).instants) == kept
    assert found.counted == (("election", "4\u00a0leader elections"),), "all of them are counted"


def test_events_that_are_not_listed_are_counted_in_the_section_and_the_captions():
    facts = sample_facts.demo() | {"changes_omitted": {"leader_change": 1_234}}
    facts["changes"].append({"at": facts["from"], "kind": "leader_change"})
    page = read(render(facts))
    said = "Not listed, but noticed later in the cluster: leader change 1,234 times."
    assert said in page.one("section", id="events").text
    told = dict(marks_of(facts).of_chart("leaderless").counted)
    assert told["election"].startswith("at least ")
    assert not told["restart"].startswith("at least ")
    assert "Not listed" not in read(render(sample_facts.demo())).one("section", id="events").text


def test_many_marks_are_one_path_and_each_stands_where_it_did():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
        + "".join(
            f'<path transform="translate({x},-8)" d="M0,-3L-3.5,3H3V1Z" fill="#0000b1"/>'
            for x in (0.25, 10, 400)
        )
        + '<path transform="translate(7,-19)" d="M-3,-3H3V3H-3Z" fill="#0000b1"/></svg>'
    )
    first, other = read(tidy(svg, "wide", 100)).all("path")
    assert first.attributes["d"] == (
        "M0,-11l-3.5,6h6.5v-2zM10,-11l-3.5,6h6.5v-2zM400,-11l-3.5,6h6.5v-2z"
    )
    assert "transform" not in first.attributes
    assert (other.attributes["transform"], other.attributes["class"]) == (
        "translate(7,-19)", "fill-event",
    )  # fmt: skip


def test_what_lies_outside_of_the_period_is_not_marked():
    facts = deepcopy(planned())
    facts["maintenance"].append({"start": "2026-11-20T00:00:00Z", "end": facts["from"]})
    facts["changes"].append({"at": "2026-11-20T00:00:00Z", "kind": "source_restart"})
    found, within = marks_of(facts), span_of(facts, "from", "to")
    assert len(found.planned) == 1
    assert all(within[0] <= at <= within[1] for at, _ in found.instants)


def in_racks(*racks: str) -> Facts:
    told = [{"source": f"broker-{n}", "rack": rack} for n, rack in enumerate(racks, 1)]
    return sample_facts.demo() | {"racks": told}


def test_racks_are_told_by_their_brokers_and_what_is_not_known_is_not_zero():
    found = section(in_racks("eu-1a", "eu-1b", "eu-1b"), "racks")
    assert found.one("p", class_="answer").text == (
        "2 racks with 1 to 2 brokers. Brokers of rack eu-1a reported 100 % of the time "
        "under min ISR. Coverage 98.14 %."
    )
    first, second = rows(found)
    assert first == ["eu-1a", "1", "0", "2 m 23 s", "100 %", "0 s"]
    assert second[:4] == ["eu-1b", "2", "1", "not known"]
    assert second[-1] == "20 s"


@pytest.mark.parametrize("racks", [(), ("one", "one", "one")])
def test_without_racks_there_is_nothing_to_compare(racks: tuple[str, ...]):
    assert "racks" not in anchors(in_racks(*racks))


def test_names_of_racks_and_reasons_are_text():
    facts = planned() | {"racks": in_racks("<i>a</i>", "\u202eb")["racks"]}
    facts["maintenance"][0]["reason"] = sample_facts.EVIL[0]
    html = render(facts)
    assert "<i>a</i>" not in html
    assert "\u202e" not in html
    assert sample_facts.EVIL[0] not in html


def test_an_incident_in_planned_maintenance_is_listed_and_called_so():
    facts = planned()
    told = [row[2] for row in rows(section(facts, "happened"))]
    assert told == ["under minimum, in planned maintenance"] * 3 + ["no leader"], "single was not"
    facts["objectives"][0]["subjects"][0]["maintenance"] = [
        {"start": "2026-11-21T06:03:30Z", "end": "2026-11-21T06:05:00Z", "reason": ""}
    ]
    assert [row[2] for row in rows(section(facts, "happened"))][:3] == ["under minimum"] * 3
