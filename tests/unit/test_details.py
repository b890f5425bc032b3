"""The details of a report: which rows their tables have, and what their lines state."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pytest
from hypothesis import given, strategies as st

from lakehouse.core import display
from lakehouse.report import csv_files, tables
from lakehouse.report.facts import fields
from lakehouse.report.facts.by_owner import add_owners
from lakehouse.report.facts.fields import Bounds, Question, Rows
from lakehouse.report.facts.report_record import Report
from lakehouse.report.figures import length, templates
from lakehouse.report.tables.section import details, sections
from lakehouse.report.tables.table_spec import MOST, Cell, Column, Listing, TableSpec
from tests import sample_facts
from tests.page_reader import Node, read
from tests.sample_facts import MINUTE, SECOND, Facts, exactly
from tests.unit.test_answers import observed, quiet
from tests.unit.test_owners import loaded

if TYPE_CHECKING:
    from lakehouse.report.summary.summarize import Summary
    from lakehouse.report.tables.section import Detail

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "report.json"

ANCHORS: Final = (
    "availability", "loss", "lag", "throttling", "tiered", "requests", "replication", "risks",
    "disk", "own-metrics", "coverage", "incidents",
)  # fmt: skip
"""Every report has these, because events, key figures and objectives link to them."""

SUBJECTS: Final = {
    "availability": "min_isr.topics", "loss": "lost_before_read.totals",
    "lag": "consumer_lag.groups", "throttling": "throttling.clients",
    "tiered": "tier_lag.topics", "replication": "replication.topics",
    "disk": "capacity.topics", "risks": "hygiene",
}  # fmt: skip


def made(facts: Facts, *, is_blind: bool = False) -> dict[str, Detail]:
    summary = cast("Summary", SimpleNamespace(is_blind=is_blind))
    return {one.anchor: one for one in details(facts, summary)}


def line(detail: Detail) -> str:
    """The line without the marks around names."""
    return detail.line.replace("\u2068", "").replace("\u2069", "")


def text(cell: Cell) -> str:
    parts = (part if isinstance(part, str) else part.text for part in cell.text)
    shown = "".join(parts) + (f" ({cell.bounds})" if cell.bounds else "")
    return shown.replace("\u00a0", " ")


def rows(table: Listing) -> list[dict[str, str]]:
    headings = [column.heading for column in table.columns]
    return [dict(zip(headings, map(text, row), strict=True)) for row in table.rows]


def drawn(detail: Detail) -> Node:
    """The tables as the page has them."""
    macros: Any = templates("lakehouse.report.page").get_template("details.html.j2").module
    return read("".join(str(macros.listing(table)) for table in detail.tables))


def specs() -> list[TableSpec]:
    names = (f"{tables.__name__}.{one.name}" for one in iter_modules(tables.__path__))
    modules = (vars(import_module(name)) for name in names)
    found = (one for module in modules for one in module.values() if isinstance(one, TableSpec))
    return list(dict.fromkeys(found))


# Declarations.


class Shop(NamedTuple):
    """A record of no report."""

    name: str
    open_us: Bounds
    stock: Shop | None


def test_table_with_wrong_key_fails_at_import() -> None:
    columns = (Column.name("Name", "nmae"),)
    with pytest.raises(TypeError, match="Shop does not have the key 'nmae'"):
        TableSpec(Rows(Shop, "shops"), "Shops", "shop", columns)


@pytest.mark.parametrize("key", ["open", "open_low", "stock.open", "name.text"])
def test_question_with_wrong_key_fails_at_import(key: str) -> None:
    question = Question("open", "any", bad=(Rows(Shop, "shops", (key,)),))
    with pytest.raises(TypeError, match=r"does not have"):
        question.check()


def test_bounds_and_inner_records_have_keys() -> None:
    fields.check_keys(Shop, ("open_us", "open_low_us", "open_high_us", "team", "stock.open_us"))


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: spec.rows.path)
def test_rows_of_table_have_its_record(spec: TableSpec) -> None:
    record: Any = Report
    for key in spec.rows.path.split("."):
        record = fields.keys_of(record)[key]
    assert record is spec.rows.record


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: spec.rows.path)
def test_table_names_a_csv_file(spec: TableSpec) -> None:
    assert spec.csv_file in {f"{file.name}.csv" for file in csv_files.FILES}


def test_sections_are_in_their_order() -> None:
    anchors = [one.anchor for one in sections()]
    every = [*ANCHORS[:9], "owners", *ANCHORS[9:]]
    assert [one for one in anchors if one in every] == every
    assert anchors[-1] == "incidents"
    assert len({one.title for one in sections()}) == len(anchors)


# Lines and tables.


def test_golden_facts_state_what_was_bad() -> None:
    found = made(json.loads(GOLDEN.read_text("utf-8")))
    assert line(found["availability"]) == (
        "5 of 5 topics affected; worst shipments, 28 min 9 s; 1 broker rejected writes; "
        "worst broker-1, 131 writes"
    )
    assert line(found["loss"]) == "1 of 1 group affected; worst nightly, at least 12,400 messages"
    assert line(found["throttling"]) == (
        "1 of 2 clients affected; worst loader / bulk-loader, 20 min"
    )
    assert line(found["coverage"]) == "99.84 % of expected observations of 5 sources"
    topics, brokers = found["availability"].tables
    assert rows(topics)[0] == {
        "Topic": "shipments", "Unavailable": "28 min 9 s", "Under min ISR": "28 min",
        "No leader": "9 s (±2 s)", "Partitions at once, max": "1", "Budget used": "11,729 %",
    }  # fmt: skip
    assert rows(brokers) == [{"Broker": "broker-1", "Rejected writes": "≥ 131"}]


def test_coverage_shows_the_reason_of_an_error_and_not_its_text() -> None:
    facts = sample_facts.demo()
    raw = "nothing listens there; java.rmi.ConnectException: Connection refused to host: broker-2"
    for one in facts["coverage"]["sources"]:
        one["first_error"] = one["first_error"] and raw
    (table,) = made(facts)["coverage"].tables
    assert {row["First error"] for row in rows(table)} == {"", "connection refused"}


def test_every_anchor_exists_whatever_the_facts_have() -> None:
    for facts in (sample_facts.demo(), sample_facts.silent_week(), quiet(), observed(0.001)):
        assert set(made(facts)) >= set(ANCHORS)


def test_quiet_week_counts_without_tables() -> None:
    found = made(quiet())
    assert line(found["availability"]) == "0 of 6 topics affected"
    assert line(found["throttling"]).startswith("0 of ")
    for anchor in ("availability", "loss", "lag", "throttling", "tiered", "risks"):
        assert not found[anchor].tables, anchor
        assert not found[anchor].note, anchor


def test_rows_without_bad_time_are_one_sentence() -> None:
    facts = quiet()
    facts["min_isr"]["topics"][0] |= exactly("unavailable_any", 20 * MINUTE)
    detail = made(facts)["availability"]
    (table,) = detail.tables
    assert len(table.rows) == 1
    assert "The other 5\u00a0topics had no incident while observed." in table.notes
    assert line(detail).startswith("1 of 6 topics affected; worst ")


def test_unobserved_time_is_stated_once_per_table() -> None:
    facts = quiet()
    for row in facts["min_isr"]["topics"][:3]:
        row.update(exactly("unavailable_any", 20 * MINUTE), unknown_us=112 * SECOND)
    (table,) = made(facts)["availability"].tables
    assert [note for note in table.notes if "1\u00a0min 52\u00a0s per topic" in note]
    assert not any("112" in text(cell) or "unknown" in text(cell) for cell in table.rows[0])


@pytest.mark.edge(6)
@pytest.mark.parametrize("share", [0.0043, 1 / 604_800, 0.4999])
def test_below_floor_only_the_reason_is_stated(share: float) -> None:
    found = made(observed(share), is_blind=True)
    for anchor in ("availability", "loss", "lag", "throttling", "tiered", "requests", "risks"):
        assert not found[anchor].tables, anchor
        assert line(found[anchor]).startswith("Not known: only "), anchor
        assert "of this week was observed" in line(found[anchor])
    assert found["coverage"].is_open
    assert not any(one.is_open for one in found.values() if one.anchor != "coverage")


@pytest.mark.edge(6)
def test_bad_news_below_floor_is_stated_without_good_news() -> None:
    facts = observed(0.0043)
    facts["min_isr"]["topics"][0] |= exactly("unavailable_any", 20 * MINUTE)
    detail = made(facts)["availability"]
    assert line(detail).startswith("At least 1 of 6 topics affected; worst ")
    assert "not known: only 0.43 % of this week was observed" in line(detail)
    assert not any("had no incident" in note for note in detail.tables[0].notes)


@pytest.mark.edge(8)
@pytest.mark.parametrize("anchor", SUBJECTS)
def test_null_fact_is_not_known(anchor: str) -> None:
    facts, path = quiet(), SUBJECTS[anchor].split(".")
    if len(path) == 1:
        facts[path[0]] = dict.fromkeys(facts[path[0]])
    else:
        facts[path[0]] = {**(facts.get(path[0]) or {}), path[1]: None}
    if anchor == "loss":
        facts["lost_before_read"]["groups"] = None
    detail = made(facts)[anchor]
    assert line(detail).startswith(("Not known", "Not collected", "Not applicable")), line(detail)
    assert not detail.tables


@pytest.mark.edge(8)
def test_null_figure_is_not_zero() -> None:
    facts = quiet()
    facts["min_isr"]["topics"][0] |= exactly("unavailable_any", 20 * MINUTE) | exactly("any", None)
    facts["min_isr"]["topics"][1] |= exactly("unavailable_any", MINUTE)
    (table,) = made(facts)["availability"].tables
    assert [row["Under min ISR"] for row in rows(table)] == ["not known", "0"]


def test_column_that_is_not_known_in_any_row_is_a_note() -> None:
    facts = quiet()
    facts["min_isr"]["topics"][0] |= exactly("unavailable_any", 20 * MINUTE) | exactly("any", None)
    (table,) = made(facts)["availability"].tables
    assert "Under min ISR" not in rows(table)[0]
    assert "Not known: Under min ISR, No leader." in table.notes


@pytest.mark.edge(4)
@pytest.mark.parametrize("shown", [None, 0.0, 30.0])
def test_brokers_own_count_is_bad_news(shown: float | None) -> None:
    facts = quiet()
    facts["min_isr"]["brokers"][0] |= {
        "under_min_isr_partition_seconds": 1200.0, "sum_of_partitions_seconds": shown,
    }  # fmt: skip
    said = line(made(facts)["availability"])
    assert said.startswith("Brokers counted partitions under min ISR for 20 m")
    assert "0 of" not in said


def test_budget_and_owner_are_columns_where_they_are_known(tmp_path: Path) -> None:
    facts = quiet()
    for row in facts["min_isr"]["topics"][:2]:
        row.update(exactly("unavailable_any", 20 * MINUTE), topic=f"payments.{row['topic']}")
    (plain,) = made(facts)["availability"].tables
    assert {"Budget used", "Owner"}.isdisjoint(rows(plain)[0])
    name = facts["min_isr"]["topics"][0]["topic"]
    judged = next(
        one for one in facts["objectives"] if "kafka.partition.unavailable" in one["metrics"]
    )
    judged["subjects"] = [
        {**one, "topic": row["topic"], "used": 2.38 if row["topic"] == name else 0.5}
        for one, row in zip(judged["subjects"][:1] * 2, facts["min_isr"]["topics"], strict=False)
    ]
    (table,) = made(add_owners(facts, loaded(tmp_path)))["availability"].tables
    first = next(row for row in rows(table) if row["Topic"] == name)
    assert first["Budget used"] == "238 %"
    assert first["Owner"] == "payments"


def test_long_table_names_the_file_with_the_others() -> None:
    facts = quiet()
    facts["min_isr"]["topics"] = [
        sample_facts.topic(f"topic-{n}", **exactly("unavailable_any", (n + 1) * SECOND))
        for n in range(5_000)
    ]
    detail = made(facts)["availability"]
    (table,) = detail.tables
    assert (len(table.rows), table.omitted) == (MOST, 5_000 - MOST)
    assert rows(table)[0]["Topic"] == "topic-4999"
    assert "4,900 more, in min_isr_topics.csv." in drawn(detail).text
    assert line(detail).startswith("5,000 of 5,000 topics affected; worst topic-4999, ")


def test_incident_links_to_its_event() -> None:
    facts = quiet()
    span = {"start": "2026-11-10T05:00:00Z", "end": "2026-11-10T05:01:30Z"}
    one = {
        "event": 3, "metric": "kafka.partition.leaderless", "topic": "orders", "partition": 2,
        "user": None, "client_id": None, "group": None, **span, "lead_us": 10 * SECOND,
        "tail_us": 0, "sources": ["broker-1"],
    }  # fmt: skip
    other = {
        **one, "event": 1, "metric": "kafka.client.produce.throttle_time", "topic": None,
        "partition": None, "user": "billing", "client_id": "invoicing",
        "start": "2026-11-09T05:00:00Z",
    }  # fmt: skip
    twin = {**other, "metric": "kafka.group.non_consumed.low"}
    facts["incidents"] = [one, other, twin]
    detail = made(facts)["incidents"]
    assert line(detail) == "2 incidents in 2 events"
    assert [list(row.values()) for row in rows(detail.tables[0])] == [
        ["Mon 9 Nov 05:00:00", "1 d", "billing / invoicing", "throttled (produce)", "1"],
        ["Tue 10 Nov 05:00:00", "1 min 30 s (1 min 30 s to 1 min 40 s)", "orders-2", "no leader",
         "3"],
    ]  # fmt: skip
    page = drawn(detail)
    assert page.one("a", href="#event-3").text == "3"
    assert page.one("time", datetime="2026-11-10T05:00:00Z")


def test_lag_has_the_bounds_of_its_histogram() -> None:
    facts = quiet()
    names = {"group": "audit", "topic": "t"}
    behind = {"records_low": 393_215, "records_high": None}
    bad = {f"behind{end}_us": 60 * MINUTE for end in ("", "_low", "_high")}
    facts["consumer_lag"] = {
        "groups": [{**names, **bad, "most": behind, "last": None, "unknown_us": 0}],
        "partitions": [{**names, "partition": 0, "records_low": 131_072, "records_high": None}],
    }
    facts["timelines"] = [
        {"name": "consumer_lag", "subject": "audit", "points": [["", 0.0, 0.0, 467_613.0]]}
    ]
    lag = {**names, "event": 1, "metric": "kafka.group.partition_lag", "partition": 0,
           "worst": 155_871.0, "start": "2026-11-10T05:00:00Z", "end": "2026-11-10T06:00:00Z",
           "lead_us": 0, "tail_us": 0, "sources": []}  # fmt: skip
    groups, partitions = made(facts | {"incidents": [lag]})["lag"].tables
    assert rows(groups)[0]["Unread records, max"] == "393,000 to 468,000"
    assert rows(partitions)[0]["Unread records, max"] == "131,000 to 156,000"
    _, partitions = made(facts | {"incidents": []})["lag"].tables
    assert rows(partitions)[0]["Unread records, max"] == "≥ 131,000"
    facts["timelines"][0]["points"] = [["", 0.0, 0.0, 304.0]]
    groups, _ = made(facts | {"incidents": []})["lag"].tables
    assert rows(groups)[0]["Unread records, max"] == "≥ 393,000"


def test_incidents_that_the_facts_lack_are_not_zero() -> None:
    facts = quiet()
    assert line(made(facts | {"incidents": None})["incidents"]).startswith("Not known")
    assert line(made(facts | {"incidents": []})["incidents"]) == "0 incidents"
    blind = observed(0.001) | {"incidents": []}
    assert line(made(blind)["incidents"]).startswith("Not known: only ")


# Figures.


@given(value=st.integers(0, 10**12), below=st.integers(0, 10**10), above=st.integers(0, 10**10))
def test_wide_bounds_are_text_and_close_ones_a_tooltip(value: int, below: int, above: int) -> None:
    low, high = max(0, value - below), value + above
    cell = Cell.bounded(Bounds(value, low, high), length)
    is_wide = value - low > 0.05 * value or high - value > 0.05 * value
    assert bool(cell.bounds) == is_wide
    assert bool(cell.title) == (not is_wide and low != high)
    assert "±0" not in cell.bounds + cell.title


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        ((None, None, None), "not known"), ((0, 0, 0), "0"), ((5, 5, None), "≥ 5\u00a0s"),
        ((0, 0, None), "≥ 0"), ((None, 4, None), "≥ 4\u00a0s"),
        ((None, 4, 9), "4\u00a0s to 9\u00a0s"), ((None, None, 9), "≤ 9\u00a0s"),
        ((60, 20, 100), "1\u00a0min"),
    ],
)  # fmt: skip
def test_figure_not_known_zero_and_bounded_differ(
    figure: tuple[int | None, ...], shown: str
) -> None:
    cell = Cell.bounded(Bounds(*figure).times(SECOND), length)
    assert "".join(map(str, cell.text)) == shown


def test_alike_bounds_have_one_figure() -> None:
    figure = Bounds(60 * SECOND, 20 * SECOND, 100 * SECOND)
    assert Cell.bounded(figure, length).bounds == "±40\u00a0s"


# The page.

NAMES: Final = (
    '<script>alert("x")</script>',
    "a" * 249,
    "\u202eevil",
    "\u05d0\u05d1\u05d2",
    "",
    "a\nb",
    "{{7*7}}",
)


@pytest.mark.parametrize("name", NAMES)
def test_hostile_name_is_escaped_bounded_and_isolated(name: str) -> None:
    facts = quiet()
    facts["throttling"]["clients"] = [
        sample_facts.client(name, name, "produce", **exactly("throttled", 20 * MINUTE))
    ]
    detail = made(facts)["throttling"]
    page = drawn(detail)
    assert not list(page.all("script"))
    (row,) = page.one("tbody").all("tr")
    isolated = list(next(row.all("th")).all("bdi"))
    assert len(isolated) == 2
    assert all(len(one.text) <= display.NAME_LIMIT for one in isolated)
    assert "\u202e" not in page.text
    assert "\n" not in detail.line
    assert detail.line.count("\u2068") == detail.line.count("\u2069") == 2
    assert len(detail.line) < 300


def test_table_has_caption_scopes_and_figures_to_the_right() -> None:
    page = drawn(made(sample_facts.demo())["throttling"])
    table = page.one("table")
    assert table.one("caption").text == "Clients throttled"
    headings = list(table.one("thead").all("th"))
    assert {one.attributes["scope"] for one in headings} == {"col"}
    for row in table.one("tbody").all("tr"):
        (first,) = row.all("th")
        assert first.attributes["scope"] == "row"
        cells = [first, *row.all("td")]
        for heading, cell in zip(headings, cells, strict=True):
            assert heading.attributes.get("class") == cell.attributes.get("class")
    assert not list(page.all("td", style=""))


def test_sort_key_is_the_figure_not_its_text() -> None:
    page = drawn(made(sample_facts.demo())["throttling"])
    cells = [row.children for row in page.one("tbody").all("tr")]
    keys = [float(cast("Node", row[2]).attributes["data-v"]) for row in cells]
    assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize("facts", [sample_facts.demo, quiet, sample_facts.hostile])
def test_details_have_no_raw_figures(facts: Any) -> None:
    for detail in made(facts()).values():
        said = f"{detail.line} {detail.note} {drawn(detail).text}"
        assert "±0" not in said
        assert "unknown" not in said.lower()
        assert not any(part.isdigit() and len(part) > 12 for part in said.split())


def test_fleet_is_small() -> None:
    found = made(sample_facts.fleet())
    macros: Any = templates("lakehouse.report.page").get_template("details.html.j2").module
    size = sum(
        len(str(macros.listing(table)).encode()) for one in found.values() for table in one.tables
    )
    assert size < 700_000
