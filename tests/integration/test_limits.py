"""Objectives on gauges of sources and groups, from bronze to statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.core.objective import Events, Objective
from lakehouse.core.periods import Period, instant, micros
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo import attainment
from lakehouse.slo.sla_statement import Counts
from tests.lake_builder import BASE, Batch
from tests.rollups import prepare

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.slo.sla_statement import Statement
    from tests.rollups import Engines

IDLE, LAG = "kafka.broker.request_handler.idle", "kafka.group.lag"
OBJECTIVES = (
    Objective("not-busy", "Not busy", "", "source", IDLE, 0.2, 0.9, op="gte"),
    Objective("keeps-up", "Keeps up", "", "group", LAG, 1000.0, 0.9),
    Objective("never-read", "Never read", "", "source", "my.own.bean", 1.0, 0.9),
)
SECONDS = 600.0
BROKERS = ("broker-1", "broker-2", "broker-3")


def batch() -> Batch:
    """Ten minutes: of broker 3 no gauge is read, and its part of the lag for five minutes only."""
    made = Batch()
    for start, end in ((0.0, 300.0), (300.0, SECONDS)):
        made.run(IDLE, start, end, 0.5, source="broker-1")
        made.run(IDLE, start, end, 0.1, source="broker-2")
        made.run("kafka.controller.active", start, end, 1.0, source="controller-9")
        for source in (*BROKERS, "controller-9"):
            made.scrape("controller", start, end, source=source)
        for source in BROKERS:
            outcome = "timeout" if source == "broker-3" and start else "ok"
            made.scrape("offsets", start, end, outcome, source=source)
            if outcome == "ok":
                made.run(LAG, start, end, 400.0, source=source, group="slow", topic="t")
                made.run(LAG, start, end, 0.0, source=source, group="fast", topic="t")
    return made


def stated(
    engines: Engines, root: Path, made: Batch, objectives: tuple[Objective, ...]
) -> list[Statement]:
    """The statements on a batch, rolled up, over all its time."""
    made.commit(root)
    prepare(root)
    engine = engines(root)
    rollup(engine, objectives, Wanted(tidy="never"))
    start_us = micros(BASE)
    period = Period(instant(start_us), instant(start_us + int(SECONDS * 1e6)))
    return attainment.read(engine, objectives, period, micros(period.end))


@pytest.fixture
def found(engines: Engines, tmp_path: Path) -> dict[tuple[str, str | None], Statement]:
    return {
        (one.objective.name, one.subject.source or one.subject.group): one
        for one in stated(engines, tmp_path, batch(), OBJECTIVES)
    }


def test_limit_has_a_verdict_for_each_broker(
    found: dict[tuple[str, str | None], Statement],
) -> None:
    """A broker that was never read has no data, a controller no such objective."""
    verdicts = {
        subject: one.verdict for (name, subject), one in found.items() if name == "not-busy"
    }
    assert verdicts == {"broker-1": "met", "broker-2": "missed", "broker-3": "no_data"}
    nowhere = {
        subject: one.verdict for (name, subject), one in found.items() if name == "never-read"
    }
    assert nowhere == dict.fromkeys((*BROKERS, "controller-9"), "no_data")
    # Three parts of 400 are too much for five minutes; then one of them is not known.
    slow = found["keeps-up", "slow"]
    assert (slow.times.bad_us, slow.unknown_us, slow.verdict) == (300e6, 300e6, "missed")
    fast = found["keeps-up", "fast"]
    assert (fast.times.good_us, fast.times.bad_us, fast.unknown_us) == (300e6, 0, 300e6)
    assert fast.verdict == "uncertain", "a broker that is not read may have the lag"


RUNS, ERRORS, RECORDS = "connect.task.runs", "connect.task.errors", "connect.task.records"
_ORDERS = {"connector": ("orders-*", "!*-test"), "task": ("!9",)}
LABELLED = (
    Objective("orders-run", "", "", "source", RUNS, 1.0, 0.9, op="gte", match=_ORDERS),
    Objective(
        "orders-read", "", "", "source", RECORDS, 0.0, 0.9, match=_ORDERS,
        events=Events(ERRORS, are_good=False, total=RECORDS),
    ),
    Objective("none-run", "", "", "source", RUNS, 1.0, 0.9, op="gte", match={"connector": ("z",)}),
)  # fmt: skip
SERIES = (
    ("client-1", "orders-sink", "0", 1.0, 5.0),
    ("client-1", "orders-sink", "9", 0.0, 100.0),
    ("client-1", "orders-test", "0", 0.0, 100.0),
    ("client-1", "payments", "0", 0.0, 100.0),
    ("client-2", "orders-it's, a \\ sink", "1", 0.0, 50.0),
    ("client-3", "payments", "0", 0.0, 100.0),
)


def test_labels_choose_the_series_that_count(engines: Engines, tmp_path: Path) -> None:
    """Of three workers two have tasks of the connectors that are meant."""
    made = Batch()
    for start, end in ((0.0, 300.0), (300.0, SECONDS)):
        for source in ("client-1", "client-2", "client-3"):
            made.scrape("connect", start, end, source=source)
        for source, connector, task, runs, errors in SERIES:
            series: dict[str, Any] = {
                "source": source, "labels": [("connector", connector), ("task", task)]
            }  # fmt: skip
            made.run(RUNS, start, end, runs, **series)
            made.counter(ERRORS, start, end, errors, **series)
            made.counter(RECORDS, start, end, 100.0, **series)
    statements = stated(engines, tmp_path, made, LABELLED)
    by_name = {
        name: {one.subject.source: one for one in statements if one.objective.name == name}
        for name in ("orders-run", "orders-read", "none-run")
    }
    assert {source: one.verdict for source, one in by_name["orders-run"].items()} == {
        "client-1": "met", "client-2": "missed"
    }  # fmt: skip
    assert {source: one.counts for source, one in by_name["orders-read"].items()} == {
        "client-1": Counts(190.0, 200.0, 600_000_000),
        "client-2": Counts(100.0, 200.0, 600_000_000),
    }
    # Where no source has such a series, none is known to have none.
    nothing = {source: one.verdict for source, one in by_name["none-run"].items()}
    assert nothing == dict.fromkeys(("client-1", "client-2", "client-3"), "no_data")
