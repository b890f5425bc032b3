from __future__ import annotations

import base64
import hashlib
import re

import pytest

from lakehouse.report.page.page import render
from tests import sample_facts
from tests.page_reader import Node, read

SAMPLES = ("quiet_week", "demo", "silent_week", "hostile", "fleet")
RANKS = ("missed", "uncertain", "no data", "met")


@pytest.fixture(scope="module")
def html() -> dict[str, str]:
    return {name: render(getattr(sample_facts, name)()) for name in SAMPLES}


@pytest.fixture(scope="module")
def pages(html) -> dict[str, Node]:
    return {name: read(text) for name, text in html.items()}


def table(page: Node, caption: str) -> Node:
    return next(one for one in page.all("table") if one.one("caption").text.startswith(caption))


def cells(table: Node, row: int) -> list[str]:
    body = list(table.one("tbody").all("tr"))[row]
    return [one.text for one in body.children if not isinstance(one, str)]


def test_the_verdict_comes_first_and_the_reading_help_last(pages):
    page = pages["demo"]
    assert [one.text for one in page.all("h2")] == [
        "Verdict",
        "What happened",
        "Could clients produce and fetch?",
        "Were the brokers fast?",
        "Could every topic be written to safely?",
        "Which clients did quotas slow down?",
        "Did tiered storage keep up?",
        "Was anything deleted before it was read?",
        "Did consumers keep up?",
        "What was read back from the remote store?",
        "How much did clients write and read?",
        "What do the other metrics say?",
        "What is not known, and why",
        "Events",
        "How to read it",
    ]
    kips = [one.text for one in page.one("main").all("p", class_="eyebrow")]
    assert kips == ["KIP-164", "KIP-13", "KIP-963", "KIP-490", "KIP-1002"]


@pytest.mark.parametrize(
    ("sample", "headline"),
    [
        ("quiet_week", "Both objectives are met."),
        ("demo", "5 objectives: 2 missed, 1 uncertain, 1 without data and 1 met."),
        ("silent_week", "No source was read: there is no data for any objective."),
    ],
)
def test_the_headline_is_the_week_in_one_sentence(pages, sample, headline):
    assert pages[sample].one("h1").text == headline


def test_verdicts_stand_worst_first_by_word_and_shape(pages):
    badges = [
        one.one("span", class_="badge")
        for one in pages["demo"].one("ol", class_="verdicts").all("li")
    ]
    said = [badge.text for badge in badges]
    assert said == sorted(said, key=RANKS.index)
    assert set(said) == set(RANKS)
    shapes = [badge.one("use").attributes["href"] for badge in badges]
    assert shapes == [f"#{word.replace(' ', '_')}" for word in said]
    for shape in shapes:
        assert list(pages["demo"].all("symbol", id=shape[1:]))


def test_a_verdict_shows_its_honest_interval_and_its_budget(pages):
    first = pages["demo"].one("li", class_="is-missed")
    assert "Lowest: topic orders 79 % (73.91 % to 80.53 %), 20 s unknown" in first.text
    assert "Bad for 1 m 11 s (1 m 10 s to 1 m 14 s), 20 s unknown" in first.text
    widths = {
        kind: float(first.one("rect", class_=kind).attributes["width"].removesuffix("%"))
        for kind in ("bad", "edge", "fill-unknown")
    }
    assert widths["bad"] < widths["edge"] < widths["fill-unknown"] <= 100


def test_what_happened_says_each_question_in_words(pages):
    said = [one.text for one in pages["demo"].one("ul", class_="findings").all("li")]
    assert said == [
        "Availability 99.88 % (99.88 % to 99.89 %) of the counted produce requests, "
        "99.97 % (99.97 % to 99.98 %) of the counted fetch requests succeeded; main error "
        "NOT_ENOUGH_REPLICAS (312). broker-2 has no data for 20 s. A partition was without a "
        "leader for 1 m 4 s (1 m 2 s to 1 m 6 s), 20 s unknown.",
        "Latency 1 of 3 brokers exceeded 500 ms p99. Worst: broker-1 (writes), 48 s (44 s to "
        "52 s), peak 2.3 s.",
        "Safe writes At least 2 of 4 topics were under min ISR or without a leader. Worst: orders, "
        "1 m 11 s (1 m 10 s to 1 m 14 s), 20 s unknown, peak at least 3 partitions at once. "
        "Coverage 98.14 %.",
        "Throttling 3 clients were throttled. Worst: client id bulk-loader (writing), 1 m 35 s "
        "(1 m 1 s to 2 m 1 s).",
        "Tiered storage 1 of 1 tiered topic had upload lag. Worst: archive, 52 s (48 s to 55 s), "
        "peak 45.0 MiB. 1 of 1 tiered topic had deletion lag. Worst: archive, 21 s (18 s to 25 s), "
        "peak 8.0 MiB.",
        "Lost before read 1 group lost records. Worst: nightly, at least 12,400 offsets in 2 "
        "partitions; 6 m 0 s unknown.",
        "Consumer lag 2 groups lagged. Worst: nightly on clicks, 30 m 0 s (29 m 0 s to 31 m 0 s), "
        "peak 12,000 to 14,263 records and 15 m 0 s to 20 m 0 s.",
        "Remote reads 1 of 1 tiered topic was read from remote storage. Most: archive, 28.5 MiB in "
        "318 requests, errors: 2.",
        "Traffic 270,000 records (103.0 MiB) written, 231.7 MiB read. Top topic: orders. Not "
        "counted: up to 20 s without data.",
    ]


def test_a_figure_in_a_table_has_its_bounds_and_its_unknown_time(pages):
    orders = cells(table(pages["demo"].one("section", id="min-isr"), "Topics"), 0)
    assert orders == [
        "orders",
        "1 m 11 s (1 m 10 s to 1 m 14 s), 20 s unknown",
        "1 m 11 s (1 m 10 s to 1 m 14 s), 20 s unknown",
        "3 m 34 s (3 m 30 s to 3 m 41 s), 20 s unknown",
        "0 s, 20 s unknown",
        "2 m 0 s",
        "at least 3",
    ]
    lost = table(pages["demo"].one("section", id="lost"), "Partitions")
    assert cells(lost, 1) == ["nightly", "topic clicks partition 1", "not known, 6 m 0 s unknown"]


def test_silence_is_never_shown_as_good_or_zero(pages):
    page = pages["silent_week"]
    answers = [one.text for one in page.one("ul", class_="findings").all("span")]
    assert len(answers) == 9
    assert set(answers) == {"Not known: no agent ran in this period."}
    section = page.one("section", id="min-isr")
    for row in range(6):
        _, *figures = cells(table(section, "Topics"), row)
        assert figures == ["not known, 7 d 0 h unknown"] * 4 + ["not known"] * 2
    assert not list(page.one("section", id="verdict").all(class_="is-met"))
    assert "0 s" not in section.text


def test_the_same_facts_unseen_are_not_told_like_the_same_facts_seen(pages):
    quiet = pages["quiet_week"].one("section", id="throttling").one("p", class_="answer").text
    silent = pages["silent_week"].one("section", id="throttling").one("p", class_="answer").text
    assert quiet == "0 clients were throttled."
    assert silent == "Not known: no agent ran in this period."


@pytest.mark.parametrize("outcomes", [{"refused": 9}, None], ids=["refused", "not asked for"])
@pytest.mark.parametrize(
    ("family", "unanswered"),
    [
        ("min_isr", {"min-isr"}),
        ("quotas", {"throttling"}),
        ("tiered", {"tier-lag", "remote-reads"}),
        ("offsets", {"lost"}),
    ],
)
def test_a_question_whose_beans_nobody_read_is_not_answered_by_the_others(
    family: str, unanswered: set[str], outcomes: dict[str, int] | None
):
    facts = sample_facts.quiet_week()
    sources = [one for one in facts["coverage"]["sources"] if one["family"] != family]
    if outcomes:
        week = sample_facts.WEEK
        unread = sample_facts.source("broker-1", family, week, week, outcomes=outcomes)
        sources.append(unread)
    facts["coverage"]["sources"] = sources
    page = read(render(facts))
    answers = {
        anchor: page.one("section", id=anchor).one("p", class_="answer").text
        for anchor in ("min-isr", "throttling", "tier-lag", "lost", "remote-reads")
    }
    state = "Not known: family" if outcomes else "Not collected: family"
    without = {anchor for anchor, said in answers.items() if said.startswith(state)}
    assert without == unanswered


def test_what_is_in_beans_alone_is_not_known_of_a_cluster_read_by_its_admin_api():
    facts, week = sample_facts.quiet_week(), sample_facts.WEEK
    facts["coverage"]["sources"] = [
        sample_facts.source("cluster-all", family, week, 0)
        for family in ("partitions", "offsets", "tiered_offsets", "topology")
    ]
    page = read(render(facts))
    answers = {
        anchor: page.one("section", id=anchor).one("p", class_="answer").text
        for anchor in (
            *("availability", "latency", "min-isr", "throttling", "tier-lag", "lost", "lag"),
            *("remote-reads", "traffic"),
        )
    }
    beans = "Not collected: the Admin API does not provide it."
    seen = {anchor for anchor, said in answers.items() if not said.startswith(beans)}
    assert seen == {"min-isr", "lost", "lag"}
    assert not any("families." in said for said in answers.values()), "no family helps here"


def test_coverage_says_what_was_not_read_by_an_agent():
    facts = sample_facts.demo()
    event = {"at": "2026-11-21T00:00:10+00:00", "kind": "imported", "old": None, "topic": None,
             "partition": None, "user": None, "client_id": None, "group": None}  # fmt: skip
    facts["changes"] = [
        {**event, "source": source, "new": "Prometheus of <b>p:9090"}
        for source in ("broker-1", "broker-1", "broker-2")
    ]
    section = read(render(facts)).one("section", id="coverage")
    assert (
        "2 sources were not read by an agent all the time: Prometheus of <b>p:9090 gave what it had"
        " kept, as the events say."
    ) in section.text


def test_coverage_says_what_is_not_known_and_why(pages):
    section = pages["demo"].one("section", id="coverage")
    assert "98.14 % of the expected time" in section.text
    assert "3 rows of the agents could not be used; gold/rejected has the reasons" in section.text
    gap = cells(table(section, "Gaps"), 0)
    assert gap[:5] == [
        "Sat 21 Nov 06:01:40",
        "Sat 21 Nov 06:02:00",
        "broker-2",
        "min_isr",
        "refused",
    ]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_page_needs_nothing_but_itself(html, pages, sample):
    page = pages[sample]
    style, script = page.one("style"), page.one("script")
    assert (len(list(page.all("style"))), len(list(page.all("script")))) == (1, 1)
    policy = page.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for node, directive in ((style, "style-src"), (script, "script-src")):
        digest = base64.b64encode(hashlib.sha256(node.raw.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    for node in page.all():
        assert not {"style", "src", "srcset", "action", "background"} & node.attributes.keys()
        assert not [key for key in node.attributes if key.startswith("on")], node
        assert node.attributes.get("href", "#").startswith("#")
    assert not re.search(r"@import|url\((?!#)", html[sample])


@pytest.mark.parametrize("sample", SAMPLES)
def test_links_and_labels_lead_somewhere(pages, sample):
    page = pages[sample]
    ids = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    wanted = {node.attributes["href"][1:] for node in page.all() if "href" in node.attributes}
    wanted |= {one.attributes["aria-labelledby"] for one in page.all("section")}
    assert wanted <= set(ids)


@pytest.mark.parametrize("sample", SAMPLES)
def test_tables_and_drawings_can_be_read_aloud(pages, sample):
    for one in pages[sample].all("table"):
        assert one.one("caption").text
        heads = list(one.one("thead").all("th"))
        assert all(head.attributes["scope"] == "col" and head.text for head in heads)
        for row in one.one("tbody").all("tr"):
            assert row.children[0].attributes["scope"] == "row"
            assert len(row.children) == len(heads)
    for one in pages[sample].all("figure"):
        assert one.one("figcaption").text
    for one in pages[sample].all("svg"):
        assert one.attributes["aria-hidden"] == "true"


def test_hostile_names_stay_text(html, pages):
    page = pages["hostile"]
    assert "<script>document.title='owned'</script>" in page.one("main").raw
    drawn = " ".join(one.raw for one in page.all("text"))
    assert "\u2068<script>docu…script>\u2069" in drawn
    assert "{{ 7*7 }}" in page.one("main").raw
    isolates = {"\u2068", "\u2069"}
    hidden = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069]")
    assert set(hidden.findall(html["hostile"])) <= isolates
    html["hostile"].encode()
    assert len(html["hostile"]) < 400_000


def test_names_are_isolated_from_the_direction_of_the_text_around_them(pages):
    for sample in ("demo", "hostile"):
        for cell in pages[sample].all("span", class_="name"):
            assert cell.one("bdi").text
    names = [one for one in pages["hostile"].all("bdi") if one.text.startswith("AAA")]
    assert names
    assert all(len(one.text) <= 48 for one in names)
    assert all(48 < len(one.attributes["title"]) <= 240 for one in names)


def test_long_lists_show_the_worst_and_count_the_rest(html, pages):
    assert len(html["fleet"].encode()) < 1_500_000
    section = pages["fleet"].one("section", id="throttling")
    first, more = section.all("table")
    assert (len(list(first.one("tbody").all("tr"))), len(list(more.one("tbody").all("tr")))) == (
        8,
        34,
    )
    assert "application-4999" in cells(first, 0)[0]
    assert section.one("summary").text == "4,992 more clients, the first 34 of them here"
    assert section.one("p", class_="on-paper").text.startswith("10 of 5,000 are printed;")
    assert "4,958 more are in the JSON report and the CSV files." in section.text


@pytest.mark.parametrize("section", ["min_isr", "throttling", "timelines", "events", "verdicts"])
def test_a_section_that_the_facts_leave_out_is_no_error(section):
    facts = sample_facts.demo()
    del facts[section]
    assert read(render(facts)).one("h1").text
