"""Partition-time of topics whose number of partitions changed, from bronze to what is told."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse.core import lake as lakes, periods
from lakehouse.engines.gold_reader import GoldRows
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts import build as reports
from lakehouse.slo import attainment, combined_statements
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.core.periods import Period
    from lakehouse.engines.engine import Engine
    from lakehouse.slo.sla_statement import Statement

ISR = "kafka.partition.under_min_isr"
EXPIRED = "kafka.partition.remote_list_offsets.expired"
SECOND = 1_000_000
WHOLE = periods.span("2026-11-16T10:00:00Z", "2026-11-16T10:10:00Z")
FIRST_HALF = periods.span("2026-11-16T10:00:00Z", "2026-11-16T10:05:00Z")
LATER = WHOLE.end + dt.timedelta(hours=1)
(MIN_ISR,) = (one for one in objective_files.load() if one.name == "min-isr")


def batch() -> Batch:
    """Ten minutes of three topics, all well but for ten seconds.

    ``again`` has four partitions, of which two are unseen for 200 s, and then is made again with
    one. ``grows`` from one to three. ``even`` has one, bad from 3 s after the first half, and maybe
    for 8 s before that.
    """
    made = Batch()
    for start, end in ((0.0, 300.0), (300.0, 600.0)):
        made.scrape("min_isr", start, end)
        made.run("kafka.topic.partitions", start, end, 1.0, topic="even")
        made.zeros(ISR, start, end, "again", [0] if start else [0, 1])
        made.run("kafka.topic.partitions", start, end, 1.0 if start else 4.0, topic="again")
        made.zeros(ISR, start, end, "grows", [0, 1, 2] if start else [0])
        made.run("kafka.topic.partitions", start, end, 3.0 if start else 1.0, topic="grows")
    made.zeros(ISR, 0.0, 100.0, "again", [2, 3], source="broker-2")
    made.zeros(ISR, 0.0, 300.0, "even", [0])
    made.zeros(ISR, 300.0, 303.0, "even", [0])
    made.run(ISR, 303.0, 313.0, 1.0, topic="even", partition=0, lead=8)
    made.zeros(ISR, 313.0, 600.0, "even", [0])
    made.counter(EXPIRED, 0.0, 300.0, 7.0, topic="even", partition=0)
    return made


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    root: Path = tmp_path_factory.mktemp("partition-time")
    batch().commit(root)
    rollups.local(root)
    return LocalEngine(lakes.at(str(root)))


def told(engine: Engine, period: Period) -> dict[str | None, Statement]:
    # One partition of four for 200 s is bad enough to miss it.
    asked = dataclasses.replace(MIN_ISR, target=0.999)
    stated = attainment.read(engine, [asked], period, periods.micros(LATER))
    found = combined_statements.by_topic(GoldRows(engine, 300 * SECOND), stated)
    return {one.statement.subject.topic: one.statement for one in found}


def seconds(one: Statement) -> tuple[float, ...]:
    """Expected, good, bad at least, bad, bad at most and unknown."""
    good, bad, low, high = one.times
    return tuple(us / SECOND for us in (one.whole_us, good, low, bad, high, one.unknown_us))


def test_existence_is_weighted_by_partitions_at_the_time(engine: Engine):
    found = told(engine, WHOLE)
    assert seconds(found["again"]) == (1500, 1100, 0, 0, 0, 400), "two were unseen"
    assert found["again"].verdict == "uncertain"
    assert seconds(found["grows"]) == (300 + 900, 1200, 0, 0, 0, 0), "there were no more"
    assert found["grows"].verdict == "met"
    assert seconds(found["even"]) == (600, 590, 10, 10, 18, 0)


def test_first_sight_after_period_widens_its_bound(engine: Engine):
    assert seconds(told(engine, FIRST_HALF)["even"]) == (300, 300, 0, 0, 5, 0)


def test_counter_has_no_partition_time(engine: Engine):
    counted = dataclasses.replace(MIN_ISR, metric=EXPIRED)
    stated = attainment.read(engine, [MIN_ISR], WHOLE, periods.micros(LATER))
    of_counters = [dataclasses.replace(one, objective=counted) for one in stated]
    found = combined_statements.by_topic(GoldRows(engine, 300 * SECOND), of_counters)
    assert {one.statement.subject.topic for one in found} == {"again", "grows"}, "nothing was told"
    assert all(one.statement.times.good_us == 0 for one in found)


def test_report_has_the_same_unknown_time(engine: Engine):
    facts = reports.facts(engine, objective_files.load(), WHOLE, now=LATER)
    rows: dict[str, Any] = {row["topic"]: row for row in facts["min_isr"]["topics"]}
    assert {name: row["partitions_unknown_us"] // SECOND for name, row in rows.items()} == {
        "again": 400, "even": 0, "grows": 0,
    }  # fmt: skip
    assert rows["again"]["unseen_us"] == 200 * SECOND
