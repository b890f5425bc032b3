"""The benchmark of truth: what it knows to be true, and that it says so when a report is wrong."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from lakehouse.core.periods import instant
from tests.truth import expected, real
from tests.truth.findings import Findings
from tests.truth.judge import judge
from tests.truth.schedule import LAGS, Schedule, Watch, schedule
from tests.truth.steps import Steps, clipped, length, united, without
from tests.truth.world import HOUR, Controller, S

FLOOR = 10 * S
AT = HOUR.start_us + 600 * S


def world_of(*events: tuple[int, str, Any]) -> Any:
    """What a controller makes of events: seconds after ``AT``, its method, and an argument."""
    controller = Controller(random.Random(1))
    for seconds, name, argument in events:
        at_us = AT + seconds * S
        if name == "unfence":
            controller.plan(at_us, lambda at, broker=argument: controller.unfence(broker, at))
        else:
            controller.plan(
                at_us, lambda _, name=name, argument=argument: getattr(controller, name)(*argument)
            )
    world = controller.run()
    for kind, client in HOUR.clients:
        world.throttles[kind, client] = {broker: [] for broker in HOUR.brokers}
    for metric in LAGS:
        for number in range(len(HOUR.topics["events.tiered"].replicas)):
            world.lag[metric, "events.tiered", number] = Steps(0)
    return world


def of_demo(*missed: str, **truth: Any) -> dict[str, Any]:
    kinds = {"under_min_isr": [], "leaderless": [], "under_min_isr_any": []}
    scenarios = [{"scenario": name, "reason": "no"} for name in missed]
    return {"slowest_heard_us": 0, "scenarios_missed": scenarios, **kinds, **truth}


REPORT: dict[str, Any] = {
    "detection_floor_us": FLOOR,
    "min_isr": {"partitions": [], "topics": []},
    "throttling": {"clients": []},
    "lost_before_read": {"groups": None},
}


def test_truth_real_missed_scenario_is_not_judged() -> None:
    truth = of_demo("throttling", "expiry")
    assert real.judge(truth, REPORT, "demo").checks == []
    with pytest.raises(KeyError, match="clients"):
        real.judge(of_demo("expiry"), REPORT, "demo")


def test_truth_real_high_of_null_is_no_bound() -> None:
    client: dict[str, Any] = {"user": None, "client_id": "c", "kind": "produce"}
    span = {"start": "2026-11-28T17:00:00+00:00", "end": "2026-11-28T17:10:00+00:00"}
    truth = of_demo("expiry", clients=[client | {"throttled": True, "spans": [span]}])
    row = {**client, "throttled_low_us": S, "throttled_high_us": None, "unknown_us": 0}
    (check,) = real.judge(truth, REPORT | {"throttling": {"clients": [row]}}, "demo").checks
    assert (check.low, check.high) == (S, math.inf)


def test_spans_are_united_cut_and_counted():
    assert united([(5, 7), (0, 3), (3, 4), (9, 9)]) == [(0, 4), (5, 7)]
    assert united([(0, 4), (5, 7)], 1) == [(0, 7)]
    assert clipped([(0, 4), (5, 7)], (2, 5)) == [(2, 4)]
    assert without([(0, 10)], [(2, 3), (9, 12)]) == [(0, 2), (3, 9)]
    assert length([(0, 2), (3, 9)]) == 8


def test_steps_say_when_something_holds():
    steps = Steps(0)
    for at, value in ((10, 1), (20, 1), (30, 0)):
        steps.set(at, value)
    assert (steps.at(9), steps.at(10), steps.at(29), steps.at(30)) == (0, 1, 1, 0)
    assert steps.times == [10, 30]
    assert steps.spans(bool, (0, 25)) == [(10, 25)]


def test_a_broker_that_is_fenced_takes_min_isr_and_leaders_with_it():
    world = world_of((0, "fence", (2,)), (100, "unfence", 2))
    under = expected.partitions(world, "under")
    leaderless = expected.partitions(world, "leaderless")
    assert leaderless["audit", 0].spans == [(AT, AT + 100 * S)]
    assert not under["audit", 0].spans
    ((start, end),) = under["orders", 0].spans
    assert start == AT
    assert AT + 100 * S < end < AT + 121 * S
    assert not under["orders", 2].spans
    assert under["orders", 1].moved, "broker 2 led it"
    assert not under["orders", 0].moved


def test_what_is_shorter_than_the_floor_is_only_in_the_most():
    key = ("orders", 0)
    world = world_of(
        (0, "fall_behind", (key, AT + 4 * S)), (100, "fall_behind", (key, AT + 130 * S)),
        (137, "fall_behind", (key, AT + 200 * S)),
    )  # fmt: skip
    truth = expected.topics(world, FLOOR)["orders", "any"]
    assert (truth.least, truth.exact, truth.most) == (93 * S, 97 * S, 104 * S)
    assert truth.incidents == 3


def test_a_schedule_is_a_function_of_its_seed():
    one, other = schedule(7), schedule(7)
    assert one.kind == other.kind
    assert one.watches == other.watches
    for key, steps in one.world.partitions.items():
        assert steps.times == other.world.partitions[key].times
    assert {schedule(seed).kind for seed in range(20)} == {"calm", "late", "troubled"}


def facts_of(low: float, high: float, unknown: float = 0, tail: float = 10) -> dict[str, Any]:
    """A report of one incident of 100 s in orders-0, told with these bounds, in seconds."""
    bounds = {"low": round(low * S), "high": round(high * S)}
    none = {"unknown_us": 0, "unseen_us": 0, "partitions_unknown_us": 0, "partitions": 1}
    topics = []
    for topic in HOUR.topics:
        mine = topic == "orders"
        row: dict[str, Any] = {"topic": topic, **none}
        row |= {name: round(unknown * S) for name in row if mine and name.endswith("_us")}
        for stem in ("any", "under", "unavailable_any"):
            row |= {f"{stem}_{end}_us": bounds[end] if mine else 0 for end in bounds}
        topics.append(row | {"leaderless_low_us": 0, "leaderless_high_us": 0})
    incident = {
        "start": instant(AT + 5 * S).isoformat(),
        "end": instant(AT + 105 * S).isoformat(),
        "lead_us": 10 * S,
        "tail_us": round(tail * S),
        "kind": "under_min_isr",
    }
    partition = {
        "topic": "orders", "partition": 0, "unknown_us": round(unknown * S),
        **{f"under_{end}_us": us for end, us in bounds.items()}, "incidents": [incident],
    }  # fmt: skip
    idle = [
        {"name": f"{kind}-throttling", "subjects": [
            {"topic": None, "client_id": client, "unknown_us": 0, "bad_low_us": 0, "bad_high_us": 0,
             "attainment": None}
            for one, client in HOUR.clients
            if one == kind]}
        for kind in ("produce", "fetch")
    ]  # fmt: skip
    return {
        "detection_floor_us": FLOOR,
        "min_isr": {"topics": topics, "partitions": [partition]},
        "throttling": {"clients": []},
        "tier_lag": {"topics": []},
        "objectives": idle,
        "lost_before_read": {"groups": []},
        "service": {"requests": []},
    }


@pytest.fixture
def one_incident() -> Schedule:
    world = world_of((0, "fall_behind", (("orders", 0), AT + 100 * S)))
    return Schedule(1, world, {broker: Watch() for broker in HOUR.brokers}, "calm")


def test_a_true_report_is_contained_and_its_width_is_told(one_incident):
    told = [judge(one_incident, facts_of(90, 110))]
    found = Findings(told, told)
    assert found.wrong == []
    figures = found.figures()
    assert figures["contained_percent"] == 100
    assert figures["width_intervals"] == 2


@pytest.mark.parametrize(
    ("low", "high", "unknown"), [(101, 120, 0), (80, 99, 0), (80, 90, 9.9), (0, 0, 0)]
)
def test_a_false_report_is_found(one_incident, low, high, unknown):
    found = Findings([judge(one_incident, facts_of(low, high, unknown))])
    assert found.figures()["contained_percent"] < 100
    assert any("orders any" in text or "orders topic any" in text for text in found.wrong)


def test_unknown_time_may_have_been_bad(one_incident):
    assert Findings([judge(one_incident, facts_of(80, 90, 10))]).wrong == []


def test_an_incident_told_too_long_for_sure_is_found(one_incident):
    (text,) = judge(one_incident, facts_of(90, 110, tail=2)).unsound
    assert "is sure of 3.000 s" in text


def test_an_incident_that_is_not_told_is_found(one_incident):
    facts = facts_of(90, 110)
    facts["min_isr"]["partitions"][0]["incidents"].clear()
    (text,) = judge(one_incident, facts).unsound
    assert "nothing is told of 100.000 s" in text
