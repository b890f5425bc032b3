"""That wrong causes and times of events are found by the schedule of their faults."""

from __future__ import annotations

from typing import Any

import pytest

from lakehouse.core.periods import instant
from tests import report_causes, report_faults, summary_facts
from tests.report_faults import Fault, us_of
from tests.truth import expected
from tests.truth.parts import of
from tests.truth.steps import clipped

AT = us_of(summary_facts.at("18 14:27:30"))
MINUTE = 60_000_000
LATER = AT + 10 * MINUTE
KILLED = Fault("killed", "broker-2", AT - 10_000_000, AT + 5 * MINUTE)
SLOW = Fault("slow", "orders", AT, AT + 20 * MINUTE)
SEED = 3
"""A simulated cluster that was wholly observed."""


def event(kind: str, *sources: str, **given: Any) -> dict[str, Any]:
    why = summary_facts.cause(kind, "18 14:27:20", "18 14:30", *sources)
    return summary_facts.event(
        1, given.pop("about", "availability"), "18 14:27:30", "18 14:47:30", 20 * MINUTE, why,
        **{"topics": ["orders"], **given},
    )  # fmt: skip


def judged(row: dict[str, Any], *faults: Fault) -> report_causes.Verdict:
    facts = {"cluster": "c", "from": summary_facts.at("16 00:00"), "events": [row]}
    return report_causes.judge(facts, faults)


@pytest.mark.parametrize(
    ("row", "fault", "wrong"),
    [
        (event("restarted", "broker-2"), KILLED, 0),
        (event("restarted", "broker-3"), KILLED, 1),
        (event("restarted", "broker-2"), SLOW, 1),
        (event("not_known"), SLOW, 0),
        (event("restarted", "broker-2"), KILLED._replace(start=AT + 9 * MINUTE, end=LATER), 1),
        (event("quota"), KILLED, 1),
        (event("no_answer", "broker-2", about="tiered"), Fault("waiting", "orders", AT, AT), 1),
    ],
)  # fmt: skip
def test_a_wrong_cause_is_found(row: dict[str, Any], fault: Fault, wrong: int) -> None:
    found = judged(row, fault)
    assert (found.judged, len(found.wrong)) == (1, wrong)


def test_a_fault_with_a_trace_asks_for_a_cause() -> None:
    assert judged(event("not_known"), KILLED)[1:3] == (0, 1)
    assert judged(event("restarted", "broker-2"), KILLED)[1:3] == (1, 1)
    assert judged(event("not_known"), SLOW)[1:3] == (0, 0)


def test_an_event_that_may_be_none_is_not_judged() -> None:
    row = event("retention", about="loss", group="g", size={"offsets_low": 0, "offsets_high": 9})
    assert judged(row, Fault("late", "g", AT, AT)).judged == 0


@pytest.mark.parametrize(("start", "end", "wrong"), [(0, 0, 0), (-300, 0, 1), (0, 300, 1)])
def test_a_wrong_time_is_found(start: int, end: int, wrong: int) -> None:
    """An event of exactly one simulated incident, and the same with seconds added to its ends."""
    schedule = of(SEED)
    bads = expected.partitions(schedule.world, "under")
    (topic, _), (first, last) = max(
        ((key, span) for key, bad in bads.items()
         for span in clipped(bad.spans, schedule.world.shape.period)),
        key=lambda one: one[1][1] - one[1][0],
    )  # fmt: skip
    part = {
        "start": str(instant(first + start * 1_000_000)),
        "end": str(instant(last + end * 1_000_000)),
    }
    row = event("not_known", topics=[topic], parts=[part])
    facts = {
        "cluster": "c", "from": part["start"], "events": [row], "detection_floor_us": 25_000_000,
        "min_isr": {"topics": []},
    }  # fmt: skip
    assert len(report_causes.judge(facts, [], schedule).mistimed) == wrong


def test_a_bad_time_without_an_event_is_found() -> None:
    schedule = of(SEED)
    facts = {
        "cluster": "c", "from": "", "events": [], "detection_floor_us": 25_000_000,
        "min_isr": {"topics": [{"topic": "orders", "unseen_us": 0}]},
    }  # fmt: skip
    assert report_causes.judge(facts, [], schedule).mistimed
    facts["min_isr"] = {"topics": [{"topic": "orders", "unseen_us": 1}]}
    assert report_causes.judge(facts, [], schedule).mistimed == []


def test_a_simulated_outage_is_a_fault_of_its_broker() -> None:
    names = {(one.kind, one.name) for one in report_faults.of_schedule(of(2))}
    assert ("hung", "broker-2") in names
    assert ("slow", "orders") in names
