"""Objectives of level partition: from bronze to what is said of each partition of a topic."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes, periods
from lakehouse.core.objective import Slices
from lakehouse.engines.gold_reader import subjects
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.relation import select
from lakehouse.explain.story import explain
from lakehouse.report.facts import build as reports
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives import verdicts
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.report_calendar import Maintenance
from tests import rollups
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.core.periods import Period
    from lakehouse.engines.engine import Engine
    from lakehouse.slo.sla_statement import Statement

pytestmark = pytest.mark.reads

ISR = "kafka.partition.under_min_isr"
SECOND = 1_000_000
WHOLE = periods.span("2026-11-16T10:00:00Z", "2026-11-16T10:10:00Z")
FIRST_HALF = periods.span("2026-11-16T10:00:00Z", "2026-11-16T10:05:00Z")
SECOND_HALF = periods.span("2026-11-16T10:05:00Z", "2026-11-16T10:10:00Z")
LATER = WHOLE.end + dt.timedelta(hours=1)
(MIN_ISR,) = (one for one in objective_files.load() if one.name == "min-isr")
EACH = dataclasses.replace(MIN_ISR, level="partition", target=0.9)


def batch() -> Batch:
    """Ten minutes of four partitions.

    0 is bad for two minutes in which 1 is not read; 2 is bad for ten seconds, first seen 3 s after
    the first half ended and maybe for 8 s before that; 3 is always well.
    Meanwhile the topic ``grows`` from one partition to three; the last is bad for half a minute.
    """
    made = Batch()
    made.run("kafka.topic.partitions", 0.0, 300.0, 1.0, topic="grows")
    made.zeros(ISR, 0.0, 300.0, "grows", [0])
    made.run("kafka.topic.partitions", 300.0, 600.0, 3.0, topic="grows")
    made.zeros(ISR, 300.0, 600.0, "grows", [0, 1])
    made.run(ISR, 300.0, 330.0, 1.0, topic="grows", partition=2)
    made.zeros(ISR, 330.0, 600.0, "grows", [2])
    for start, end in ((0.0, 300.0), (300.0, 600.0)):
        made.run("kafka.topic.partitions", start, end, 4.0, topic="t")
        made.scrape("min_isr", start, end)
        made.zeros(ISR, start, end, "t", [3])
    made.zeros(ISR, 0.0, 100.0, "t", [0])
    made.run(ISR, 100.0, 220.0, 1.0, topic="t", partition=0)
    made.zeros(ISR, 220.0, 300.0, "t", [0])
    made.zeros(ISR, 300.0, 600.0, "t", [0])
    other: dict[str, Any] = {"source": "broker-2"}
    made.zeros(ISR, 0.0, 100.0, "t", [1], **other)
    made.zeros(ISR, 220.0, 300.0, "t", [1], **other)
    made.zeros(ISR, 300.0, 600.0, "t", [1], **other)
    made.zeros(ISR, 0.0, 300.0, "t", [2])
    made.zeros(ISR, 300.0, 303.0, "t", [2])
    made.run(ISR, 303.0, 313.0, 1.0, topic="t", partition=2, lead=8)
    made.zeros(ISR, 313.0, 600.0, "t", [2])
    return made


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    root: Path = tmp_path_factory.mktemp("each")
    batch().commit(root)
    rollups.local(root)
    return LocalEngine(lakes.at(str(root)))


def stated(
    engine: Engine,
    period: Period = WHOLE,
    *planned: Maintenance,
    topic: str = "t",
) -> dict[int | None, Statement]:
    options = attainment.Options(maintenance=planned)
    found = attainment.read(engine, [EACH], period, periods.micros(LATER), options=options)
    assert {one.subject.topic for one in found} == {"t", "grows"}
    return {one.subject.partition: one for one in found if one.subject.topic == topic}


def seconds(one: Statement) -> tuple[float, ...]:
    """Good, bad at least, bad, bad at most and unknown."""
    good, bad, low, high = one.times
    return tuple(us / SECOND for us in (good, low, bad, high, one.unknown_us))


def test_each_partition_has_a_statement_of_its_own(engine: Engine):
    found = stated(engine)
    assert {number: seconds(one) for number, one in found.items()} == {
        0: (360, 120, 120, 120, 120),
        1: (480, 0, 0, 0, 120),
        2: (470, 10, 10, 18, 120),
        3: (480, 0, 0, 0, 120),
    }, "while one was not read, gold does not say which: it is unknown of each, at most"
    assert {number: one.verdict for number, one in found.items()} == {
        0: "missed", 1: "uncertain", 2: "uncertain", 3: "uncertain",
    }  # fmt: skip


def test_a_partition_is_expected_from_when_its_topic_has_it(engine: Engine):
    found = stated(engine, topic="grows")
    assert {number: (seconds(one), one.expected_us // SECOND) for number, one in found.items()} == {
        0: ((600, 0, 0, 0, 0), 600),
        1: ((300, 0, 0, 0, 0), 300),
        2: ((270, 30, 30, 30, 0), 300),
    }
    before = stated(engine, FIRST_HALF, topic="grows")
    assert list(before) == [0], "what it has later it did not have then"


def test_partition_objective_on_counter_has_no_data(engine: Engine):
    counter = "kafka.partition.remote_list_offsets.expired"
    asked = dataclasses.replace(EACH, name="counted", metric=counter)
    found = attainment.read(engine, [asked], WHOLE, periods.micros(LATER))
    assert {one.verdict for one in found} == {"no_data"}


def test_explain_of_partition_has_its_unobserved_time(engine: Engine):
    told = explain(engine, [EACH], "t/1", WHOLE, now_us=periods.micros(LATER))
    (one,) = told["objectives"]
    assert (one["level"], one["unknown_us"]) == ("partition", 120 * SECOND)
    assert sum(span["unknown_us"] for span in one["unknown"]) == 120 * SECOND
    assert one["bad"] == []


def test_first_sight_after_period_widens_its_bound(engine: Engine):
    found = stated(engine, FIRST_HALF)
    assert seconds(found[2]) == (180, 0, 0, 5, 120)
    assert seconds(found[3]) == (180, 0, 0, 0, 120)


def test_partition_has_its_result_without_maintenance(engine: Engine):
    start, end = (periods.micros(edge) for edge in (FIRST_HALF.start, FIRST_HALF.end))
    planned = Maintenance(start, end, "new disks", {"topic": ("t",)})
    found = stated(engine, WHOLE, planned)
    assert seconds(found[0]) == (360, 120, 120, 120, 120), "never hidden"
    rest = {number: one.without for number, one in found.items()}
    assert {number: seconds(one) for number, one in rest.items() if one} == {
        0: (300, 0, 0, 0, 0),
        1: (300, 0, 0, 0, 0),
        2: (290, 10, 10, 18, 0),
        3: (300, 0, 0, 0, 0),
    }


def planned(*spans: Period) -> tuple[Maintenance, ...]:
    edges = ((periods.micros(one.start), periods.micros(one.end)) for one in spans)
    return tuple(Maintenance(start, end, "new disks") for start, end in edges)


def test_first_sight_in_maintenance_widens_the_time_before(engine: Engine):
    """Whoever is asked: a partition, its topic in time, and its topic in slices."""
    rest = stated(engine, WHOLE, *planned(SECOND_HALF))[2].without
    assert rest is not None
    assert seconds(rest) == (180, 0, 0, 5, 120)
    # 180 of 300 seconds are good, and 175 if it began before.
    cut = dataclasses.replace(MIN_ISR, name="cut", slices=Slices(300 * SECOND, 0.6))
    for table in (tables.SLI, tables.WINDOWS["sli"]):
        names = (f"r.{name} AS {name}" for name in table.column_names if name != "objective")
        copy = f"SELECT {', '.join(names)}, 'cut' AS objective FROM {{rows}} r "  # noqa: S608
        copy += "WHERE r.objective = 'min-isr'"
        engine.write(table, select(copy, rows=engine.rows(table)))
    options = attainment.Options(maintenance=planned(SECOND_HALF))
    now = periods.micros(LATER)
    found = attainment.read(engine, [MIN_ISR, cut], WHOLE, now, options=options)
    whole = {one.objective.name: one.without for one in found if one.subject.topic == "t"}
    assert seconds(whole["min-isr"]) == (180, 120, 120, 125, 0)
    assert seconds(whole["cut"]) == (300, 0, 0, 300, 0)


def test_start_within_excluded_time_is_excluded(engine: Engine):
    for period, holes in (
        (WHOLE, planned(FIRST_HALF, SECOND_HALF)),
        (SECOND_HALF, planned(SECOND_HALF)),
    ):
        options = attainment.Options(maintenance=holes)
        now = periods.micros(LATER)
        found = attainment.read(engine, [MIN_ISR, EACH], period, now, options=options)
        assert found
        for one in found:
            assert one.without is not None
            assert (seconds(one.without), one.without.expected_us) == ((0, 0, 0, 0, 0), 0)


def test_business_hours_include_first_sight_at_their_end(engine: Engine):
    known, now_us = subjects(engine), periods.micros(LATER)
    gold = Gold(engine, "cluster-a", WHOLE, 300, known, now_us)
    found = verdicts.statements_in(gold, [MIN_ISR], [FIRST_HALF])
    (one,) = (each for each in found if each.subject.topic == "t")
    assert seconds(one) == (180, 120, 120, 125, 0)


def test_together_each_weighs_the_same(engine: Engine):
    facts = reports.facts(engine, [EACH], WHOLE, now=LATER)
    (told,) = facts["objectives"]
    mine = [one["partition"] for one in told["subjects"] if one["topic"] == "t"]
    assert mine == [0, 2, 1, 3], "worst first"
    assert (told["level"], told["weighted"]["weight"]) == ("partition", "equal")
    assert told["weighted"]["bad_us"] == (130 + 30) * SECOND
    assert facts["verdicts"][0]["subjects"] == 4 + 3
    assert json.dumps(facts)


def test_partition_results_are_published_once_each(engine: Engine):
    found = list(stated(engine).values())
    assert len(attainment.publish(engine, found, WHOLE)) == 4
    assert attainment.publish(engine, found, WHOLE) == []
    rows = engine.collect(engine.rows(tables.SLA)).to_pylist()
    assert {(row["topic"], row["partition_id"]): row["bad_us"] // SECOND for row in rows} == {
        ("t", 0): 120, ("t", 1): 0, ("t", 2): 10, ("t", 3): 0,
    }  # fmt: skip
