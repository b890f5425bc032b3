"""The sections ``events`` and ``incidents`` of a report, by the golden facts of a story."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from lakehouse.core import display
from lakehouse.report.facts import report_json
from tests import sample_facts

FACTS: Final = json.loads(
    (Path(__file__).parents[1] / "golden" / "report.json").read_text(encoding="utf-8")
)
EVENTS: Final = FACTS["events"]
NAMES: Final = ("topic", "partition", "user", "client_id", "group", "source")


def one(**wanted: Any) -> dict[str, Any]:
    (found,) = (row for row in EVENTS if all(row[key] == value for key, value in wanted.items()))
    return dict(found)


def test_the_events_of_each_subject_add_up_to_its_bad_time() -> None:
    used: Counter[tuple[Any, ...]] = Counter()
    for event in EVENTS:
        for use in event["uses"]:
            used[use["objective"], *map(use.get, NAMES)] += use["bad_us"]
    wanted = {
        (objective["name"], *map(subject.get, NAMES)): subject["bad_us"]
        for objective in FACTS["objectives"]
        for subject in objective["subjects"]
        if objective["name"] != "coverage" and subject["bad_us"]
    }
    assert used == wanted
    assert len(wanted) > 8


def test_each_incident_is_in_one_event() -> None:
    counted = Counter(row["event"] for row in FACTS["incidents"])
    assert counted == {row["number"]: row["incidents"] for row in EVENTS if row["incidents"]}
    assert FACTS["incidents_omitted"] == 0
    keys = [tuple(map(str, (*map(row.get, NAMES), row["metric"], row["start"], row["sources"])))
            for row in FACTS["incidents"]]  # fmt: skip
    assert len(set(keys)) == len(keys)


def test_the_first_used_most_of_a_budget() -> None:
    assert [row["number"] for row in EVENTS] == list(range(1, len(EVENTS) + 1))
    used = [row["used"] or 0 for row in EVENTS]
    assert used == sorted(used, reverse=True)
    for row in EVENTS:
        assert row["used"] == max((use["share"] for use in row["uses"]), default=None)


def test_parts_lie_within_the_event_and_bounds_hold() -> None:
    for row in EVENTS:
        ends = [display.parse(part[key]) for part in row["parts"] for key in ("start", "end")]
        assert ends == sorted(ends), row["number"]
        assert (row["parts"][0]["start"], row["parts"][-1]["end"]) == (row["from"], row["to"])
        assert row["bad_low_us"] <= row["bad_us"] <= row["bad_high_us"]


def test_a_broker_that_dies_is_the_likely_cause_of_what_it_hits() -> None:
    """The story's broker 2 dies for 72 s; nothing else happens in its event."""
    event = one(kind="availability", **{"from": "2026-11-16T11:11:40Z"})
    assert (event["cause"]["kind"], event["cause"]["sources"]) == ("restarted", ["broker-2"])
    assert {(hit["topic"], hit["kind"]) for hit in event["hits"]} >= {
        ("orders", "under_min_isr"), ("orders", "leaderless"), ("archive", "leaderless"),
    }  # fmt: skip
    orders = next(hit for hit in event["hits"] if hit["kind"] == "under_min_isr")
    assert (orders["topic"], orders["partitions"], orders["most"], orders["of"]) == (
        "orders", 2, 2, 6,
    )  # fmt: skip


def test_planned_work_is_said_to_be_planned() -> None:
    assert [row["topics"] for row in EVENTS if row["planned"]] == [["shipments"]]


def test_without_evidence_the_cause_is_not_known_and_what_was_looked_for_is_said() -> None:
    (event,) = (row for row in EVENTS if row["cause"]["ruled_out"])
    assert (event["topics"], event["cause"]["kind"]) == (["clicks"], "not_known")
    assert {"restart", "scrape_failure", "leader_change"} <= {*event["cause"]["ruled_out"]}


def test_what_no_incident_explains_is_an_event_of_its_subject() -> None:
    """gold/incidents has what is above zero; latency is bad above its threshold."""
    event = one(kind="latency")
    assert (event["source"], event["incidents"], len(event["parts"])) == ("broker-1", 0, 1)
    assert event["bad_us"] == event["uses"][0]["bad_us"]


def test_losses_and_throttling_say_how_much() -> None:
    lost, throttled = one(kind="loss"), one(kind="throttling")
    assert (lost["cause"]["kind"], throttled["cause"]["kind"]) == ("retention", "quota")
    (known,) = FACTS["lost_before_read"]["totals"]
    assert lost["size"]["offsets_low"] == known["offsets_low"] > 0
    assert (lost["size"]["offsets_high"], known["offsets_high"]) == (None, None), "at least"
    assert throttled["size"]["throttle_ms_max"] > 0


def test_saved_facts_of_format_1_still_open(tmp_path: Path) -> None:
    """What they call events are raw changes."""
    old = {key: value for key, value in sample_facts.demo().items() if key != "incidents_omitted"}
    changes = old.pop("changes")
    old |= {"format": 1, "events": changes, "events_omitted": {"leader_change": 7}}
    del old["incidents"]
    file = tmp_path / "report.json"
    file.write_text(json.dumps(old), encoding="utf-8")
    facts = report_json.load(file)
    assert (facts["format"], facts["changes"]) == (2, changes)
    assert facts["changes_omitted"] == {"leader_change": 7}
    assert "events" not in facts


@pytest.mark.parametrize("key", ["number", "from", "kind"])
def test_saved_events_without_a_name_or_instant_are_refused(tmp_path: Path, key: str) -> None:
    facts = json.loads(json.dumps(FACTS))
    del facts["events"][0][key]
    file = tmp_path / "report.json"
    file.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(Exception, match="not a report"):
        report_json.load(file)
