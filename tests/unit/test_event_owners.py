"""Owners of events, and what a team sees of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from lakehouse.report.facts import by_owner, report_json
from lakehouse.report.facts.by_owner import add_owners
from lakehouse.report.owners import load

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "report.json"
FILE: Final = """\
owners:
- {team: sales, topics: [orders, payments]}
- {team: web, topics: [clicks], groups: [nightly]}
- {owner: Ada, topics: [archive]}
- {team: data, clients: [bulk-loader]}
"""


def facts(tmp_path: Path, team: str = "") -> dict[str, Any]:
    file = tmp_path / "owners.yaml"
    file.write_text(FILE, encoding="utf-8")
    found = add_owners(json.loads(GOLDEN.read_text(encoding="utf-8")), load(file))
    return by_owner.of_team(found, team) if team else found


def owners_of(found: dict[str, Any]) -> dict[tuple[str, str], tuple[Any, Any]]:
    return {
        (row["kind"], row["from"][11:16]): (row["owner"], row["owners"]) for row in found["events"]
    }


def test_the_owner_is_that_of_what_used_most_of_a_budget(tmp_path: Path) -> None:
    found = owners_of(facts(tmp_path))
    assert found["availability", "11:11"] == ("sales", ["Ada", "sales", "web"])
    assert found["throttling", "11:45"] == ("data", ["data"])
    assert found["loss", "13:20"] == ("web", ["web"])
    assert found["tiered", "11:10"] == ("Ada", ["Ada"])
    assert found["availability", "12:21"] == (None, []), "shipments has no owner"


def test_a_team_sees_its_events_and_of_those_its_part(tmp_path: Path) -> None:
    found = facts(tmp_path, "sales")
    shared = next(row for row in found["events"] if row["kind"] == "availability")
    assert shared["topics"] == ["orders", "payments"]
    assert {row["topic"] for row in (*shared["uses"], *shared["hits"])} == {"orders", "payments"}
    assert shared["used"] == max(use["share"] for use in shared["uses"])
    assert {row["kind"] for row in found["events"]} == {"availability", "latency"}, "of all brokers"
    assert [row["number"] for row in found["events"]] == [1, 2]
    of_topics = [row for row in found["incidents"] if row["topic"] is not None]
    assert {row["topic"] for row in of_topics} == {"orders", "payments"}
    assert {row["event"] for row in of_topics} == {shared["number"]}


def test_the_events_of_a_team_add_up_to_the_bad_time_of_its_subjects(tmp_path: Path) -> None:
    for team in ("sales", "web", "data"):
        found = facts(tmp_path, team)
        used = sum(use["bad_us"] for row in found["events"] for use in row["uses"] if use["topic"]
                   or use["group"] or use["client_id"])  # fmt: skip
        assert used == sum(
            subject["bad_us"] for one in found["objectives"] for subject in one["subjects"]
            if one["name"] != "coverage" and not subject["source"]
        )  # fmt: skip


def test_no_name_of_another_team_is_left(tmp_path: Path) -> None:
    text = report_json.text({key: facts(tmp_path, "data")[key] for key in ("events", "incidents")})
    assert not [name for name in ("orders", "clicks", "nightly", "archive") if name in text]


def test_counts_of_brokers_are_of_their_owner(tmp_path: Path) -> None:
    file = tmp_path / "owners.yaml"
    file.write_text(f"{FILE}- {{team: platform, sources: ['*']}}\n", encoding="utf-8")
    found = add_owners(json.loads(GOLDEN.read_text(encoding="utf-8")), load(file))
    owners = {(row["level"], row["topic"], row["team"]) for row in found["incidents"]}
    assert ("source", None, "platform") in owners
    assert ("partition", "orders", "sales") in owners
    assert not [team for level, _, team in owners if level == "source" and team != "platform"]
