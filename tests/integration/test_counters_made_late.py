"""Objectives on events whose counters Kafka makes with the first event, as it does most of them.

A topic's meter appears on a broker with the first event that it counts, and goes when the broker no
longer leads the topic. Until then there were no events, which is known while its family was read.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from lakehouse.core import periods
from lakehouse.core.lake import Lake
from lakehouse.core.objective import Events, Objective, Slices
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.slo import attainment
from lakehouse.slo.report_calendar import Maintenance
from tests import gold_builder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.engines.engine import Engine
    from lakehouse.slo.sla_statement import Statement

SECOND = 1_000_000
WINDOW = 300 * SECOND
DAY = 288 * WINDOW
WEEK = periods.week("2024-W47")
START, END = periods.micros(WEEK.start), periods.micros(WEEK.end)
SATURDAY = START + 5 * DAY
UNREAD = (START + DAY, START + DAY + 10 * WINDOW)
"""No broker was read in this time."""

ERRORS, REQUESTS = "kafka.topic.remote_fetch.errors", "kafka.topic.remote_fetch.requests"
LAZY = Events(ERRORS, are_good=False, total=REQUESTS)
OWN = Events("acme.topic.bad", are_good=False, total="acme.topic.all")
BROKERS = ("broker-1", "broker-2")
BORN = {"orders": START - DAY, "idle": START - DAY, "new": SATURDAY + 100 * SECOND}


def objective(name: str, events: Events, slices: Slices | None = None) -> Objective:
    return Objective(
        name, name, "", "topic", events.total, 0.0, 0.9999, slices=slices, events=events
    )


def rows(topic: str, metric: str, windows: Iterable[int], increase: float) -> list[dict]:
    return [
        {"cluster": "c", "window_start": periods.instant(at), "metric": metric, "topic": topic,
         "series_seen_us": WINDOW, "increase": increase}
        for at in windows
    ]  # fmt: skip


@pytest.fixture(
    scope="module",
    params=["local", pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.nightly))],
)
def engine(request: pytest.FixtureRequest, lake: Lake) -> Engine:
    """Either engine: they read the same SQL."""
    if request.param == "local":
        return LocalEngine(lake)
    from lakehouse.engines.spark_engine import SparkEngine  # noqa: PLC0415 - it imports Spark

    return SparkEngine(request.getfixturevalue("spark"), lake)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root = str(tmp_path_factory.mktemp("lake"))
    (Path(root) / tables.RUNS.path / "_delta_log").mkdir(parents=True)
    weekdays = [at for at in range(START, SATURDAY, WINDOW) if not UNREAD[0] <= at < UNREAD[1]]
    gold_builder.put(
        root, tables.WINDOWS["topics"],
        *rows("orders", REQUESTS, weekdays, 2_800.0),
        *rows("orders", ERRORS, weekdays[-1:], 1.0),
        *rows("new", REQUESTS, [END - WINDOW], 5.0),
        *rows("orders", OWN.total, weekdays, 2_800.0),
        *rows("orders", OWN.counted, weekdays[-1:], 1.0),
    )  # fmt: skip
    gold_builder.put(
        root, tables.WINDOWS["sources"],
        *(
            {"cluster": "c", "window_start": periods.instant(at),
             "metric": "kafka.rsm.delete.requests",
             "source": "broker-1", "series_seen_us": WINDOW, "increase": 3.0}
            for at in weekdays[:9]
        ),
    )  # fmt: skip
    gold_builder.put(
        root, tables.WINDOWS["coverage"],
        *(
            {"cluster": "c", "window_start": periods.instant(at), "source": source,
             "family": "tiered",
             "outcome": "unreachable" if UNREAD[0] <= at < UNREAD[1] else "ok",
             "outcome_us": WINDOW, "scrapes": 30}
            for at in range(START, END, WINDOW)
            for source in BROKERS
        ),
        *(
            {"cluster": "c", "window_start": periods.instant(at), "source": source, "outcome": "ok",
             "family": "remote_reads", "outcome_us": WINDOW, "scrapes": 30}
            for source, until in (("broker-1", END), ("broker-2", SATURDAY))
            for at in range(START, until, WINDOW)
        ),
    )  # fmt: skip
    gold_builder.put(
        root, tables.SUBJECTS,
        *(
            {"cluster": "c", "kind": "topic", "topic": topic, "first_seen": periods.instant(born),
             "last_seen": periods.instant(END), "attributes": {}}
            for topic, born in BORN.items()
        ),
        *(
            {"cluster": "c", "kind": "source", "source": source, "attributes": {},
             "first_seen": periods.instant(START), "last_seen": periods.instant(END)}
            for source in BROKERS
        ),
    )  # fmt: skip
    done = dict.fromkeys(("runs_version", "scrapes_version", "members_version", "hours"), 1)
    done |= {"finished_at": dt.datetime.now(dt.UTC), "window_seconds": 300}
    gold_builder.put(root, tables.PROGRESS, done)
    for table in (tables.SLI, tables.WINDOWS["sli"], tables.PARTITIONS):
        gold_builder.put(root, table)
    return Lake(root)


def read(engine: Engine, *objectives: Objective, **more: object) -> dict[tuple, Statement]:
    options = attainment.Options(**more)  # type: ignore[arg-type]
    found = attainment.read(engine, objectives, WEEK, END + DAY, options=options)
    return {(one.objective.name, one.subject.topic): one for one in found}


def test_single_error_in_four_million_counts_as_one(engine: Engine) -> None:
    one = read(engine, objective("reads", LAZY))["reads", "orders"]
    assert one.counts is not None
    assert one.counts.total == 2_800.0 * (5 * 288 - 10)
    assert one.counts.total - one.counts.good == 1
    assert one.unknown_us == UNREAD[1] - UNREAD[0], "what was not read, and nothing else"
    assert one.attainment == pytest.approx(1 - 1 / one.counts.total, abs=1e-6)


def test_observed_time_without_event_is_good(engine: Engine) -> None:
    hours = Slices(12 * WINDOW, 0.9)
    found = read(engine, objective("by-hour", LAZY, hours))
    one = found["by-hour", "orders"]
    assert one.times == (7 * DAY, 0, 0, 12 * WINDOW), "the hour with ten unread windows may be bad"
    assert found["by-hour", "new"].times.bad_us == 0


def test_a_topic_has_no_time_before_it_was_there(engine: Engine) -> None:
    one = read(engine, objective("reads", LAZY))["reads", "new"]
    assert (one.expected_us, one.unknown_us) == (END - BORN["new"], 0)
    assert one.verdict == "met"


def test_a_topic_without_any_event_has_no_share(engine: Engine) -> None:
    one = read(engine, objective("reads", LAZY))["reads", "idle"]
    assert one.verdict == "no_data"


def test_unknown_counter_is_observed_by_its_own_rows(
    engine: Engine,
) -> None:
    one = read(engine, objective("own", OWN))["own", "orders"]
    assert one.counts is not None
    assert one.counts.seen_us == WINDOW, "the one window in which both counters were there"
    assert one.verdict == "uncertain"


def test_maintenance_is_excluded_without_a_counter(engine: Engine) -> None:
    planned = (Maintenance(SATURDAY, SATURDAY + DAY, "disks", {"topic": ("orders",)}),)
    one = read(engine, objective("reads", LAZY), maintenance=planned)["reads", "orders"].without
    assert one is not None
    assert one.counts is not None
    assert one.expected_us == 6 * DAY
    assert one.counts.seen_us == 6 * DAY - (UNREAD[1] - UNREAD[0])


def test_a_counter_without_any_row_counted_nothing(engine: Engine) -> None:
    events = replace(LAZY, counted="kafka.topic.remote_copy.errors")
    one = read(engine, objective("copies", events))["copies", "orders"]
    assert one.counts is not None
    assert one.counts.good == one.counts.total, "no copy failed"


def test_a_broker_is_seen_by_its_own_scrapes(engine: Engine) -> None:
    deletes = Events("kafka.rsm.delete.errors", are_good=False, total="kafka.rsm.delete.requests")
    asked = replace(objective("deletes", deletes), level="source")
    found = attainment.read(engine, [asked], WEEK, END + DAY)
    by_source = {one.subject.names["source"]: one for one in found}
    one = by_source["broker-1"]
    assert one.counts is not None
    assert (one.counts.total, one.unknown_us, one.verdict) == (27.0, 0, "met")
    assert by_source["broker-2"].verdict == "no_data", "it deleted nothing"
