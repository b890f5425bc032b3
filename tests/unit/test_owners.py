"""Who owns what, what that costs, and one team's part of the facts."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from lakehouse.errors import OwnersError
from lakehouse.report import owners
from lakehouse.report.facts.by_owner import add_owners, of_team
from lakehouse.report.owners import Owner, Prices
from lakehouse.report.page.page import render
from lakehouse.report.summary.summarize import summarize
from lakehouse.report.tables.section import details
from tests import sample_facts
from tests.page_reader import read
from tests.trend_facts import facts_of, subject as trend_of

FILE = """
owners:
  - team: payments
    owner: Ada Example
    tier: gold
    topics: ["orders", "pay*"]
    clients: ["bulk-*", "billing"]
    groups: [nightly]
  - team: storage
    topics: "a[ru]*"
    users: ["carol"]
prices:
  currency: EUR
  stored_gib_month: 30
  read_gib: 2
"""
GIB = 1024**3


def loaded(folder: Path, text: str = FILE) -> owners.Owners:
    file = folder / "owners.yaml"
    file.write_text(text)
    return owners.load(file)


@pytest.fixture
def facts(tmp_path: Path) -> sample_facts.Facts:
    made = sample_facts.demo()
    made["tiering"] = {
        "topics": [
            {"topic": "archive", "uploaded_bytes": 5.0 * GIB, "read_bytes": 3.0 * GIB,
             "stored_byte_seconds": GIB * 86_400.0 * 10, "unknown_us": 7},
            {"topic": "audit-log", "uploaded_bytes": None, "read_bytes": None,
             "stored_byte_seconds": GIB * 86_400.0, "unknown_us": 0},
        ]
    }  # fmt: skip
    return add_owners(made, loaded(tmp_path))


def account(facts: sample_facts.Facts, team: str | None) -> sample_facts.Facts:
    (found,) = [one for one in facts["owners"]["accounts"] if one["team"] == team]
    return found


@pytest.mark.parametrize(
    ("row", "team"),
    [
        ({"topic": "orders"}, "payments"),
        ({"topic": "orders2"}, None),
        ({"topic": "Orders"}, None),
        ({"topic": "payments"}, "payments"),
        ({"topic": "archive"}, "storage"),
        ({"topic": "apple"}, None),
        ({"client_id": "bulk-loader", "user": None}, "payments"),
        ({"client_id": "reporter", "user": "carol"}, "storage"),
        ({"client_id": "bulk-loader", "user": "carol"}, "payments"),
        ({"group": "nightly", "topic": "archive"}, "payments"),
        ({"group": "other", "topic": "orders"}, None),
        ({"source": "broker-1"}, None),
        ({}, None),
    ],
)
def test_the_first_entry_that_matches_owns_a_row(tmp_path: Path, row: dict, team: str | None):
    assert loaded(tmp_path).of(row).team == team


def test_all_labels_are_told(tmp_path: Path):
    assert loaded(tmp_path).of({"topic": "orders"}) == Owner("payments", "Ada Example", "gold")


@given(st.text())
def test_any_name_can_be_asked_for(name: str):
    rule = owners.Rule(Owner("t"), {"topic": owners.pattern(["*"])})
    assert owners.Owners((rule,)).of({"topic": name}).team == "t"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "owners is missing"),
        ("owners: {}", "owners: expected a list of owners"),
        ("owners: [", "not YAML"),
        ("owners:\n- team: a\n  topics: ['x']\n- team: b\n  topcs: ['x']\n",
         "owners[1].topcs: unknown key; did you mean 'topics'?"),
        ("owners:\n- topics: ['x']\n", "owners[0]: an entry has one of team"),
        ("owners:\n- team: a\n", "owners[0]: an entry has one of topics, clients"),
        ("owners:\n- team: a\n  topics: [1]\n",
         "owners[0].topics[0]: expected a pattern in quotes"),
        ("owners:\n- team: [a]\n  topics: ['x']\n", "owners[0].team: expected a name"),
        ("owners:\n- nobody\n", "owners[0]: expected labels and patterns"),
        ("owners: []\nprice: {}\n", "price: unknown key; did you mean 'prices'?"),
        ("owners: []\nprices: {}\n", "prices: currency is missing"),
        ("owners: []\nprices: {currency: EUR, read_gib: -1}\n",
         "prices.read_gib: expected a price of 0 or more"),
        ("owners: []\nprices: {currency: EUR, read_gb: 1}\n", "prices.read_gb: unknown key"),
        ("owners: !!python/object/apply:os.system ['true']\n", "1:9: a tag"),
        ("owners: []\nowners: []\n", "duplicate key 'owners'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_that_says_where(tmp_path: Path, text: str, told: str):
    with pytest.raises(OwnersError) as caught:
        loaded(tmp_path, text)
    assert told in str(caught.value)
    assert str(tmp_path / "owners.yaml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path):
    with pytest.raises(OwnersError, match="No such file or directory"):
        owners.load(tmp_path / "none.yaml")


def test_an_account_adds_up_what_is_known_and_says_what_is_not(facts: sample_facts.Facts):
    mine = account(facts, "payments")
    second = sample_facts.SECOND
    assert (mine["topics"], mine["clients"], mine["groups"]) == (2, 2, 1)
    assert (mine["throttled_us"], mine["throttled_low_us"], mine["throttled_high_us"]) == (
        95 * second, 61 * second, 121 * second,
    )  # fmt: skip
    assert (mine["offsets_low"], mine["offsets_high"]) == (12_400, None)
    assert mine["not_known"] == {"clients": 0, "topics": 0, "groups": 1}
    theirs = account(facts, "storage")
    assert theirs["not_known"]["topics"] == 1
    assert theirs["read_bytes"] == 3 * GIB
    assert theirs["unknown_us"] == 20 * second + 7
    assert account(facts, None)["clients"] == 1, "what nobody owns is counted, too"
    assert facts["owners"]["accounts"][-1]["team"] is None


def test_cost_is_prices_times_amounts(facts: sample_facts.Facts):
    # 11 GiB days are 11/30 GiB months at 30, and 3 GiB were read at 2; uploads have no price.
    assert account(facts, "storage")["cost"] == pytest.approx(11 + 6)
    assert account(facts, "payments")["cost"] == 0


def test_a_cost_of_which_nothing_is_known_is_not_zero():
    row = {"topic": "t", "uploaded_bytes": None, "read_bytes": None, "stored_byte_seconds": None}
    made = add_owners({"tiering": {"topics": [row]}}, owners.Owners((), Prices("EUR", 1.0)))
    (one,) = made["owners"]["accounts"]
    assert one["cost"] is None
    assert one["stored_byte_seconds"] is None


def test_what_nobody_looked_at_is_not_zero(tmp_path: Path):
    made = add_owners(sample_facts.silent_week(), loaded(tmp_path))
    one = account(made, "payments")
    assert one["topics"] == 2
    assert one["throttled_us"] is one["uploaded_bytes"] is one["offsets_low"] is one["cost"] is None


def without(facts: sample_facts.Facts, *families: str) -> sample_facts.Facts:
    """The same facts of agents that were told not to read these families."""
    sources = [row for row in facts["coverage"]["sources"] if row["family"] not in families]
    return facts | {"coverage": {**facts["coverage"], "sources": sources}}


def test_what_no_agent_was_told_to_read_is_not_zero(tmp_path: Path):
    seen = sample_facts.quiet_week()
    for section, key in (("throttling", "clients"), ("tier_lag", "topics")):
        seen[section][key] = []
    one = account(add_owners(seen, loaded(tmp_path)), "payments")
    assert (one["throttled_high_us"], one["stored_byte_seconds"], one["offsets_high"]) == (0, 0, 0)
    assert one["unknown_us"] == 0
    unseen = without(seen, "quotas", "tiered", "offsets")
    one = account(add_owners(unseen, loaded(tmp_path)), "payments")
    keys = ("throttled_us", "throttled_high_us", "uploaded_bytes", "stored_byte_seconds",
            "offsets_high", "unknown_us", "cost")  # fmt: skip
    assert {one[key] for key in keys} == {None}


def test_unknown_time_that_is_not_known_itself_is_not_zero(tmp_path: Path):
    made = sample_facts.demo()
    made["throttling"]["clients"][0] |= {"client_id": "billing", "unknown_us": None}
    one = account(add_owners(made, loaded(tmp_path)), "payments")
    assert one["unknown_us"] is None, "nothing is promised of a client, so nobody reckoned"


def test_nothing_given_is_changed(tmp_path: Path):
    given = sample_facts.demo()
    before = deepcopy(given)
    of_team(add_owners(given, loaded(tmp_path)), "payments")
    assert given == before


def test_a_team_sees_its_own_and_is_judged_by_it(facts: sample_facts.Facts):
    mine = of_team(facts, "storage")
    assert [one["topic"] for one in mine["min_isr"]["topics"]] == ["audit-log"]
    assert mine["min_isr"]["partitions"] == mine["min_isr"]["brokers"] == []
    assert {one["weighted"] for one in mine["objectives"]} == {None}, "that is of all teams"
    assert [one["client_id"] for one in mine["throttling"]["clients"]] == ["reporter"]
    verdicts = {one["objective"]: (one["verdict"], one["subjects"]) for one in mine["verdicts"]}
    assert verdicts == {"min-isr": ("met", 1), "tier-lag": ("uncertain", 1), "remote": ("met", 1)}
    assert mine["verdicts"][0]["objective"] == "tier-lag", "worst first"
    drawn = {(one["name"], one["subject"]) for one in mine["timelines"]}
    assert drawn == {
        ("coverage", None), ("copy_lag_bytes", "archive"), ("delete_lag_bytes", "archive")
    }  # fmt: skip
    assert mine["own_metrics"]["metrics"] == [], "these are of workers, which nobody owns"
    assert mine["coverage"] == facts["coverage"]
    assert [one["kind"] for one in mine["changes"]] == ["source_restart"], "it is of all"
    assert [one["team"] for one in mine["owners"]["accounts"]] == ["storage"]


@pytest.mark.slow
def test_a_team_sees_its_own_trends(tmp_path: Path):
    bad = (trend_of("orders", [1] * 13), trend_of("archive", [2] * 13), trend_of("else", [3] * 13))
    facts = add_owners(facts_of(*bad), loaded(tmp_path))
    told = of_team(facts, "storage")["trends"]
    assert [one["topic"] for one in told["objectives"][0]["subjects"]] == ["archive"]
    assert (told["tested"], told["significant_by_chance"]) == (1, 0.08)
    assert told["objectives"][0]["never_bad"] is None, "of all teams together alone it is known"
    assert "orders" not in read(render(of_team(facts, "storage"))).one("main").raw


def test_a_group_makes_no_topic_of_another_team_its_own(facts: sample_facts.Facts):
    facts["timelines"].append({**facts["timelines"][3], "subject": "clicks"})
    drawn = {one["subject"] for one in of_team(facts, "payments")["timelines"]}
    assert "clicks" not in drawn


def test_no_such_team_and_no_owners_are_one_line(facts: sample_facts.Facts):
    with pytest.raises(OwnersError, match="Teams with subjects: payments, storage"):
        of_team(facts, "sales")
    with pytest.raises(OwnersError, match=r"no owners\. Specify their file"):
        of_team(sample_facts.demo(), "payments")


@pytest.mark.slow
def test_the_page_has_a_table_and_a_column_of_owners(facts: sample_facts.Facts):
    page = read(render(facts))
    (body,) = page.one("div", id="d-owners").all("tbody")
    first, second, *_ = [one.text for one in body.all("tr")]
    assert first.startswith("payments")
    assert second.startswith("storage")
    assert "Owner" in [one.text for one in page.one("thead").all("th")]
    topics = page.one("div", id="d-availability").one("table")
    orders = next(one for one in topics.all("tr") if one.text.startswith("orders"))
    assert "payments" in orders.text


def test_without_owners_there_is_neither():
    page = read(render(sample_facts.demo()))
    assert not list(page.all("div", id="d-owners"))
    assert not {"Team", "Owner"} & {one.text for one in page.all("th")}


def test_a_teams_page_says_whose_it_is(facts: sample_facts.Facts):
    page = read(render(of_team(facts, "payments")))
    assert "· team payments ·" in page.one("header").text
    assert "archive" not in page.one("main").raw


@pytest.mark.slow
def test_evil_labels_stay_text():
    rule = owners.Rule(Owner(*sample_facts.EVIL[:3]), {"topic": owners.pattern(["*"])})
    made = add_owners(sample_facts.hostile(), owners.Owners((rule,), Prices("<b>EUR")))
    page = read(render(made))
    assert not list(page.all("b", onmouseover="alert(1)"))
    assert sample_facts.EVIL[0] in page.one("div", id="d-owners").raw
    assert "<b>EUR" in page.one("div", id="d-owners").raw


def budgets_of(facts: sample_facts.Facts) -> dict[str, tuple[str, str]]:
    """The used error budgets in the table of owners: the highest one, and the total."""
    (fold,) = (one for one in details(facts, summarize(facts)) if one.anchor == "owners")
    (table,) = fold.tables
    headings = [column.heading for column in table.columns]
    places = [headings.index(name) for name in ("Highest budget used", "Total budget used")]
    return {
        row[0].text[0].text if row[0].text[0] != "no owner" else "no owner": tuple(
            "".join(row[place].text) for place in places
        )
        for row in table.rows
    }  # fmt: skip


def test_a_team_has_its_highest_and_its_total_budget(tmp_path: Path) -> None:
    file = Path(__file__).parents[1] / "golden" / "report.json"
    found = add_owners(json.loads(file.read_text(encoding="utf-8")), loaded(tmp_path))
    told = budgets_of(found)
    worst = max(
        row["used"]
        for one in found["objectives"]
        for row in one["subjects"]
        if row["team"] == "payments" and row["used"] is not None
    )
    (whole,) = (one for one in found["composites"] if one["team"] == "payments")
    used = (1 - whole["attainment"]) / (1 - whole["target"])
    assert told["payments"] == (f"{worst * 100:,.0f}\u00a0%", f"{used * 100:,.0f}\u00a0%")
    assert told["no owner"][1] == "", "topics without an owner are no team"
    (account,) = (one for one in found["owners"]["accounts"] if one["team"] == "payments")
    assert (account["highest_used"], account["total_used"]) == (worst, used)
    assert budgets_of(of_team(found, "payments")) == {"payments": told["payments"]}
