"""Good statements of a report: a true report has no false one, and a spoiled one is noticed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from collector.model import Commit, Partition
from lakehouse.core.periods import instant
from tests.truth import admin, logs, sources, verdicts
from tests.truth.claims import Claim, claims
from tests.truth.findings import Findings
from tests.truth.judge import judge
from tests.truth.parts import IN_PART, in_part
from tests.truth.schedule import Parts, Schedule, Watch
from tests.truth.steps import Steps
from tests.truth.world import HOUR, Controller, Log, S

AT = HOUR.start_us + 600 * S
KEY = Partition("orders", 0)
GROUP = "billing"


@pytest.fixture
def schedule() -> Schedule:
    """A partition is under its min ISR for 100 s, a group loses 50 offsets, a write fails."""
    controller = Controller(random.Random(1))
    controller.plan(AT, lambda _: controller.fall_behind(("orders", 0), AT + 100 * S))
    world = controller.run()
    for kind, client in HOUR.clients:
        world.throttles[kind, client] = {broker: [] for broker in HOUR.brokers}
    for metric in ("kafka.topic.remote_copy_lag.bytes", "kafka.topic.remote_delete_lag.segments"):
        for number in range(len(HOUR.topics["events.tiered"].replicas)):
            world.lag[metric, "events.tiered", number] = Steps(0)
    log = world.logs[KEY] = Log(Steps(0), Steps(1_000))
    log.starts.set(AT, 150)
    world.commits[Commit(GROUP, *KEY)] = Steps(100)
    world.answered[1, "produce", logs.GOOD].set(AT, 99)
    world.answered[1, "produce", logs.ERRORS["produce"]].set(AT, 1)
    away = ((AT, AT + 600 * S), True)
    watches = {broker: Watch((away,) if broker == 1 else ()) for broker in HOUR.brokers}
    return Schedule(1, world, watches, "in part")


def report() -> dict[str, Any]:
    """A true report of it."""
    zero = {f"{stem}{end}": 0 for stem in STEMS for end in ("_us", "_low_us", "_high_us")}
    unknown = {"unknown_us": 0, "unseen_us": 0, "partitions_unknown_us": 0}
    topics = [{"topic": topic, **zero, **unknown} for topic in HOUR.topics]
    orders = next(row for row in topics if row["topic"] == "orders")
    for stem in ("any", "under", "unavailable_any"):
        orders |= {f"{stem}_us": 100 * S, f"{stem}_low_us": 90 * S, f"{stem}_high_us": 110 * S}
    partition = {
        "topic": "orders", "partition": 0, "unknown_us": 0, "incidents": [],
        "under_us": 100 * S, "under_low_us": 90 * S, "under_high_us": 110 * S,
    }  # fmt: skip
    start, end = (instant(us).isoformat() for us in HOUR.period)
    return {
        "cluster": "hour", "from": start, "to": end, "window_seconds": 300, "time_zone": "UTC",
        "detection_floor_us": 10 * S,
        "min_isr": {"topics": topics, "partitions": [partition]},
        "throttling": {"clients": []},
        "tier_lag": {"topics": []},
        "verdicts": [{"objective": "min-isr", "verdict": "missed"}],
        "objectives": [_min_isr(), _lost()],
        "lost_before_read": {
            "groups": [
                {"group": GROUP, "topic": "orders", "partition": 0, "offsets_low": 0,
                 "offsets_high": 50, "unknown_us": 0}
            ]
        },
        "service": {
            "leaderless_us": 0, "leaderless_low_us": 0, "leaderless_high_us": 0, "unknown_us": 0,
            "brokers": [], "errors": [],
            "requests": [
                {"request": "produce", "answers": 100, "answers_low": 90, "answers_high": 110,
                 "errors": 1, "errors_low": 0, "errors_high": 2,
                 "good": 0.99, "good_low": 0.98, "good_high": 1.0, "unknown_us": 0}
            ],
        },
        "coverage": {
            "sources": [
                {"source": "broker-1", "family": "min_isr", "interval_us": 10 * S,
                 "unknown_us": 590 * S, "observed_us": 2_110 * S, "percent": 78.1, "outcomes": {}}
            ]
        },
    }  # fmt: skip


STEMS = ("any", "under", "leaderless", "unavailable_any")


def _min_isr() -> dict[str, Any]:
    row = {"topic": "orders", "client_id": None, "group": None, "expected_us": HOUR.length_us,
           "unknown_us": 0, "attainment": None, "bad_low_us": 90 * S, "bad_high_us": 110 * S,
           "verdict": "missed"}  # fmt: skip
    return {"name": "min-isr", "target": 0.999, "unknown": "interval", "subjects": [row]}


def _lost() -> dict[str, Any]:
    row = {"topic": None, "client_id": None, "group": GROUP, "expected_us": HOUR.length_us,
           "unknown_us": 0, "attainment": 0.99, "attainment_low": 0.98, "attainment_high": 1.0,
           "bad_low_us": 0, "bad_high_us": 9, "verdict": "missed"}  # fmt: skip
    return {"name": "lost-before-read", "target": 0.999, "unknown": "interval", "subjects": [row]}


def false_ones(schedule: Schedule, facts: dict[str, Any]) -> list[Claim]:
    judged = judge(schedule, facts)
    return [one for one in claims(schedule, facts, judged.checks) if one.is_false]


def test_claims_of_a_true_report_are_true(schedule):
    found = claims(schedule, report(), judge(schedule, report()).checks)
    assert len(found) > 20
    assert [one for one in found if one.is_false] == []


def _no_topic_time(facts: dict[str, Any]) -> None:
    for row in facts["min_isr"]["topics"]:
        row.update(dict.fromkeys((name for name in row if name.endswith("_us")), 0))


def _no_partitions(facts: dict[str, Any]) -> None:
    facts["min_isr"]["partitions"] = []


def _exact_time(facts: dict[str, Any]) -> None:
    row = facts["min_isr"]["partitions"][0]
    row["under_low_us"] = row["under_high_us"] = 80 * S


def _met(facts: dict[str, Any]) -> None:
    facts["objectives"][0]["subjects"][0]["verdict"] = "met"


def _all_lost_none(facts: dict[str, Any]) -> None:
    facts["lost_before_read"]["groups"] = []


def _lost_exactly(facts: dict[str, Any]) -> None:
    facts["lost_before_read"]["groups"][0] |= {"offsets_low": 40, "offsets_high": 40}


def _lost_met(facts: dict[str, Any]) -> None:
    facts["objectives"][1]["subjects"][0]["attainment_low"] = 1


def _no_errors(facts: dict[str, Any]) -> None:
    facts["service"]["requests"][0] |= {"errors_high": 0}


def _all_good(facts: dict[str, Any]) -> None:
    facts["service"]["requests"][0] |= {"good": 1.0, "good_low": 1.0}


def _counted_twice(facts: dict[str, Any]) -> None:
    facts["service"]["requests"][0] |= {"answers_low": 200, "answers_high": 200}


def _covered(facts: dict[str, Any]) -> None:
    facts["coverage"]["sources"][0] |= {"unknown_us": 0, "percent": 100.0}


def _state_good(facts: dict[str, Any]) -> None:
    facts["answers"] = [{"question": "min-isr", "state": "good"}]


@pytest.mark.parametrize(
    "spoil",
    [
        _no_topic_time, _no_partitions, _exact_time, _met, _all_lost_none, _lost_exactly, _lost_met,
        _no_errors, _all_good, _counted_twice, _covered, _state_good,
    ],
)  # fmt: skip
def test_claims_of_a_spoiled_report_are_false(schedule, spoil):
    facts = report()
    spoil(facts)
    found = false_ones(schedule, facts)
    assert found
    told = Findings(claims=found)
    assert told.figures()["false_reassurance"] == len(found)
    assert told.wrong


@pytest.mark.parametrize(
    ("anchor", "said"),
    [
        ("availability", "0 of 5 topics affected"),
        ("requests", "100 % of produce requests succeeded"),
        ("loss", "0 of 3 groups affected"),
    ],
)
def test_claims_judge_lines_of_the_page(schedule, monkeypatch, anchor, said):
    detail = type("FakeDetail", (), {"anchor": anchor, "line": said})
    monkeypatch.setattr("tests.truth.claims.details", lambda *_: [detail])
    assert [one.says for one in false_ones(schedule, report())] == [said]


@pytest.mark.parametrize(
    "said",
    [
        "Not known: only 0.4 % of this week was observed",
        "0 of 5 topics affected; coverage 92.33 %",
        "0 of 5 topics affected; 2 topics without data",
        "At least 1 of 5 topics affected; worst orders, 1 min 40 s",
        "99.1 % of produce requests and 100 % of fetch requests succeeded",
    ],
)
def test_claims_leave_out_lines_that_are_true(schedule, monkeypatch, said):
    anchor = "requests" if "requests" in said else "availability"
    detail = type("FakeDetail", (), {"anchor": anchor, "line": said})
    monkeypatch.setattr("tests.truth.claims.details", lambda *_: [detail])
    assert false_ones(schedule, report()) == []


def test_unknown_beside_a_figure_is_no_claim(schedule):
    facts = report()
    _no_partitions(facts)
    for row in facts["min_isr"]["topics"]:
        row["unseen_us"] = 60 * S
    assert false_ones(schedule, facts) == []


def test_a_second_agent_fills_the_gap_of_the_first(schedule):
    facts = report()
    _covered(facts)
    watch = schedule.watches[1]
    schedule.watches[1] = Watch(watch.away, twin=Watch())
    assert false_ones(schedule, facts) == []


def test_lost_offsets_are_those_that_no_group_had_read(schedule):
    assert logs.truths(schedule.world).lost == {Commit(GROUP, *KEY): 50}


def test_offsets_answered_in_part_lack_group_and_start():
    world, always = in_part(IN_PART + 2).world, HOUR.whole
    broker = world.partitions["orders", 0].at(AT).leader or 0
    parts = Parts(groups=(("steady", always),), starts=((KEY, always),))
    source = admin.SimulatedOffsets(world, broker, parts, sources.described)
    offsets = source.answer(lambda: AT).offsets
    assert source.lacks
    assert offsets is not None
    assert KEY not in offsets.log_starts
    assert Commit(GROUP, *KEY) in offsets.commits_after
    assert "steady" not in {one.group for one in offsets.commits_after}


@pytest.mark.parametrize(
    ("low", "high", "attainment", "cause"),
    [(3, 5, 0.9, "edges"), (3, 3, 0.9, "unknown"), (3, 4, 0.9, "unknown"), (0, 0, None, "no_data")],
)
def test_cause_of_undecided_verdict(low, high, attainment, cause):
    row = {"bad_low_us": low, "bad_high_us": high, "attainment": attainment}
    assert verdicts.cause(row, 4) == cause


def test_schedules_in_part_have_each_fault_among_four():
    plans = [in_part(seed) for seed in range(IN_PART, IN_PART + 4)]
    watches = [watch for plan in plans for watch in plan.watches.values()]
    assert all(watch.parts.groups and watch.parts.starts for watch in watches)
    assert all(watch.parts.beans and watch.parts.values for watch in watches)
    assert any(watch.parts.all_beans for watch in watches)
    assert any(watch.twin for watch in watches)
    assert any(watch.deaf["offsets"] for watch in watches)
    assert any("down" in one.values for plan in plans for one in plan.world.process.values())
