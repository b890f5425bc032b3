"""Owners of events in the short report, and the events of one team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse.report.facts.by_owner import add_owners, of_team
from lakehouse.report.owners import load
from lakehouse.report.summary import lines
from lakehouse.report.summary.summarize import summarize
from lakehouse.report.summary.texts import plain
from tests.summary_facts import MINUTE, Facts, cause, event, facts

if TYPE_CHECKING:
    from pathlib import Path

OWNERS = """
owners:
  - {team: Finance, owner: Ada, users: [billing]}
  - {team: Compliance, groups: [audit-archive]}
  - {team: Payments, topics: [payments]}
  - {owner: Mia, topics: [orders, audit]}
"""


def with_owners(tmp_path: Path) -> Facts:
    path = tmp_path / "owners.yaml"
    path.write_text(OWNERS)
    broker = event(8, "availability", "18 14:27", "18 14:47", MINUTE,
                   cause("fenced", "18 14:27", "18 14:47"), owners=None)  # fmt: skip
    found = facts()
    found["events"].append(broker)
    for one in found["events"]:
        subjects = [{"topic": topic} for topic in one["topics"][:1]]
        if one["group"]:
            subjects = [{"topic": None, "group": one["group"]}]
        one["uses"] = [{**names, "objective": "min-isr", "share": 0.5} for names in subjects]
    owned = add_owners(found, load(path))
    owned["owners"]["accounts"] = [{"team": "Payments"}]
    return owned


def test_event_has_the_owners_of_its_subjects(tmp_path: Path) -> None:
    owners = {
        one["number"]: (one["owner"], one["owners"]) for one in with_owners(tmp_path)["events"]
    }
    assert owners == {
        1: ("Compliance", ["Compliance"]),
        2: ("Finance", ["Finance"]),
        3: ("Mia", ["Mia"]),
        4: ("Payments", ["Payments"]),
        5: ("Payments", ["Payments"]),
        6: (None, []),
        7: (None, []),
        8: (None, []),
    }


def test_team_has_its_events_and_those_of_brokers(tmp_path: Path) -> None:
    part = of_team(with_owners(tmp_path), "Payments")
    assert [one["number"] for one in part["events"]] == [1, 2, 3]
    assert [one.owner and one.owner.text for one in summarize(part).events] == [
        "Payments", "Payments", None
    ]  # fmt: skip


def test_unknown_events_of_a_team_stay_unknown(tmp_path: Path) -> None:
    found = with_owners(tmp_path) | {"events": None}
    assert of_team(found, "Payments")["events"] is None


def with_brokers(tmp_path: Path) -> Facts:
    path = tmp_path / "owners.yaml"
    path.write_text(OWNERS + '  - {team: Platform, sources: ["broker-*"]}\n')
    found = facts()
    for one in found["events"]:
        one["uses"] = [{"topic": topic, "share": 0.5, "objective": "min-isr"}
                       for topic in one["topics"]]  # fmt: skip
    owned = add_owners(found, load(path))
    owned["owners"]["accounts"] = [{"team": "Payments"}]
    return owned


def test_event_of_brokers_is_of_their_owner(tmp_path: Path) -> None:
    owned = with_brokers(tmp_path)
    row = next(one for one in owned["events"] if one["cause"]["kind"] == "restarted")
    assert (row["owner"], row["team"]) == ("Platform", "Platform")
    assert row["owners"] == ["Payments", "Platform"]
    unexplained = next(one for one in owned["events"] if one["cause"]["kind"] == "not_known")
    assert unexplained["owner"] == "Mia"
    found = next(one for one in summarize(owned).events if one.number == row["number"])
    assert found.owner
    assert (found.owner.text, plain(found.affects)) == ("Platform", "affects Payments")
    assert "Owner: Platform, affects Payments." in plain(lines.event_action(found))


def test_team_sees_that_brokers_have_another_owner(tmp_path: Path) -> None:
    part = of_team(with_brokers(tmp_path), "Payments")
    row = next(one for one in part["events"] if one["cause"]["kind"] == "restarted")
    assert (row["owner"], row["owners"]) == ("Platform", ["Payments", "Platform"])
