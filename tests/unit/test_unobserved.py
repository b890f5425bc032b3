"""Unobserved time in reports of small lakes: unknown is never zero and never good."""

from __future__ import annotations

import datetime as dt
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest
from deltalake import write_deltalake

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.report.facts import build
from lakehouse.report.summary import texts
from lakehouse.report.summary.summarize import summarize
from lakehouse.report.tables import monitoring, storage
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import rollup
from lakehouse.slo.openslo import objective_files
from tests import rollups
from tests.lake_builder import BASE, CLUSTER, Batch, made, micros

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakehouse.core.objective import Objective

WINDOW: Final = 300
WINDOWS: Final = 12
SECOND: Final = 1_000_000
WHOLE: Final = range(WINDOWS)
BROKERS: Final = ("broker-1", "broker-2", "broker-3")
UNDER: Final = "kafka.partition.under_min_isr"
COUNTED: Final = "kafka.broker.under_min_isr_partitions"
SIZE: Final = "kafka.log.size"
THROTTLE: Final = "kafka.client.produce.throttle_time"
LOST: Final = "kafka.group.non_consumed"
PRODUCE: Final = "kafka.broker.produce.answers"
TRAFFIC: Final = "kafka.topic.bytes_in"
DEFAULT: Final = objective_files.load()
NO_MIN_ISR: Final = [one for one in DEFAULT if one.name not in {"min-isr", "leaderless", "clients"}]


def facts_of(root: Path, *batches: Batch, objectives: Sequence[Objective] = DEFAULT) -> Any:
    """Return the facts of a report on an hour."""
    rollups.prepare(root)
    for batch in batches:
        batch.commit(root)
    rollup(LocalEngine(lakes.at(str(root))), objectives, Wanted(tidy="never"))
    return report(root, objectives)


def report(root: Path, objectives: Sequence[Objective] = DEFAULT) -> Any:
    """Return the facts of a lake that is rolled up."""
    engine = LocalEngine(lakes.at(str(root)))
    end = WINDOWS * WINDOW
    period = Period(BASE, BASE + dt.timedelta(seconds=end))
    now = period.end + dt.timedelta(minutes=6)
    return build.facts(engine, objectives, period, now=now)


def cluster(*more: str, sources: Sequence[str] = BROKERS) -> Batch:
    """Return an hour in which three brokers answered, and all was well.

    Args:
        more: Further families that are read.
        sources: The brokers.
    """
    batch = Batch()
    for start in (number * WINDOW for number in WHOLE):
        end = start + WINDOW
        for place, source in enumerate(sources):
            for family in ("min_isr", "leaders", "topology", *more):
                batch.scrape(family, start, end, source=source)
            batch.zeros(UNDER, start, end, "t", [place], source=source)
        for attribute, value in (("partitions", len(sources)), ("replication_factor", 1)):
            batch.run(f"kafka.topic.{attribute}", start, end, float(value), topic="t")
    return batch


def answer(facts: Any, name: str) -> tuple[str, float | None]:
    """State and observed share of a question."""
    (row,) = (row for row in facts["answers"] if row["question"] == name)
    return row["state"], row["observed_percent"]


def sizes(batch: Batch, windows: Sequence[int], source: str) -> None:
    """Add the size of two replicas."""
    for start in (number * WINDOW for number in windows):
        for partition in range(2):
            batch.run(SIZE, start, start + WINDOW, 1e6, topic="t", partition=partition,
                      source=source)  # fmt: skip


@pytest.mark.parametrize(
    ("hidden", "state", "share", "line"),
    [
        ({}, "good", 100, "1 topic with"),
        ({"broker-1": 3}, "partly_known", pytest.approx(100 * 33 / 36), "coverage 91.66 %"),
        (dict.fromkeys(BROKERS, 8), "partly_known", pytest.approx(100 / 3), "only 33.33 %"),
    ],
)
def test_sizes_that_brokers_hid_are_not_observed(
    tmp_path: Path, hidden: dict[str, int], state: str, share: Any, line: str
) -> None:
    batch = cluster("log")
    for source in BROKERS:
        sizes(batch, WHOLE[: WINDOWS - hidden.get(source, 0)], source)
    facts = facts_of(tmp_path, batch)
    assert answer(facts, "capacity") == (state, share)
    assert line in storage.DISK.detail(facts).line.replace("\u00a0", " ")


def test_own_count_that_a_broker_hid_is_unknown(tmp_path: Path) -> None:
    batch = cluster("controller")
    for number in WHOLE:
        start, end = number * WINDOW, (number + 1) * WINDOW
        for source in BROKERS if number < 6 else BROKERS[1:]:
            batch.run(COUNTED, start, end, 0.0, source=source)
    facts = facts_of(tmp_path, batch)
    unknown = {row["source"]: row["unknown_us"] for row in facts["min_isr"]["brokers"]}
    assert unknown == {"broker-1": 6 * WINDOW * SECOND, "broker-2": 0, "broker-3": 0}
    assert answer(facts, "racks") == ("partly_known", pytest.approx(100 * 5 / 6))


def test_replicas_out_of_sync_that_brokers_hid_are_not_observed(tmp_path: Path) -> None:
    batch = cluster("replication")
    for number in WHOLE[:9]:
        for place, source in enumerate(BROKERS):
            batch.zeros("kafka.partition.under_replicated", number * WINDOW, (number + 1) * WINDOW,
                        "t", [place], source=source)  # fmt: skip
    facts = facts_of(tmp_path, batch)
    assert answer(facts, "replication") == ("partly_known", 75)


def test_family_that_was_enabled_later_is_named(tmp_path: Path) -> None:
    # Its objective counts from the first scrape; coverage from the start of the source.
    batch = cluster()
    for source in BROKERS:
        sizes(batch, WHOLE[6:], source)
        for number in WHOLE[6:]:
            batch.scrape("log", number * WINDOW, (number + 1) * WINDOW, source=source)
    facts = facts_of(tmp_path, batch)
    (tile,) = (row for row in facts["key_figures"] if row["name"] == "coverage")
    (objective,) = (row for row in facts["objectives"] if row["name"] == "coverage")
    assert (tile["value"], objective["status"]) == (0.875, "met")
    assert tile["objective"] is None, "the objective has another figure"
    assert (tile["source"], tile["subject_value"]) == ("broker-1", 6 * WINDOW * SECOND)
    detail = monitoring.COVERAGE.detail(facts)
    assert detail is not None
    assert "of 3 sources was not scraped before Mon 16 Nov 10:30" in plain(detail.note)
    assert answer(facts, "capacity") == ("partly_known", 50)


def test_answers_that_brokers_hid_are_not_observed(tmp_path: Path) -> None:
    batch = cluster("requests")
    for number in (*WHOLE[:3], *WHOLE[9:], WINDOWS):
        for source in BROKERS:
            batch.counter("kafka.broker.fetch.answers", number * WINDOW, (number + 1) * WINDOW,
                          9.0, source=source, labels=[("error", "NONE")])  # fmt: skip
    for source in BROKERS:
        batch.scrape("requests", WINDOWS * WINDOW, (WINDOWS + 1) * WINDOW, source=source)
    facts = facts_of(tmp_path, batch)
    assert answer(facts, "availability") == ("partly_known", 50)
    unknown = {row["unknown_us"] for row in facts["service"]["brokers"]}
    assert unknown == {6 * WINDOW * SECOND}


@pytest.mark.parametrize("other", [False, True])
def test_series_above_a_limit_are_stated(tmp_path: Path, other: bool) -> None:  # noqa: FBT001
    """Gauges above the limit are one more subject, which has a result of its own."""
    batch = cluster("quotas")
    named = [("u", "x"), (None, "__other__")][: 1 + other]
    for number in WHOLE:
        for source in BROKERS:
            batch.idle(THROTTLE, number * WINDOW, (number + 1) * WINDOW, named, source=source)
    for row in batch.scrapes:
        if (row["family"], row["source"]) == ("quotas", "broker-2"):
            row["dropped_series"] = 7 * row["scrapes"]
    facts = facts_of(tmp_path, batch)
    (objective,) = (row for row in facts["objectives"] if row["name"] == "produce-throttling")
    assert objective["status"] == ("met" if other else "uncertain")
    assert answer(facts, "throttling") == ("partly_known", 100)
    detail = monitoring.COVERAGE.detail(facts)
    assert detail is not None
    assert "quotas of 1 source had up to 7 series above its limit" in plain(detail.note)
    notes = " ".join(map(texts.plain, summarize(facts).notes))
    assert "up to 7 series of family quotas on 1 source" in plain(notes)


def test_number_of_series_above_a_limit_is_not_known_without_bronze(tmp_path: Path) -> None:
    facts_of(tmp_path, cluster())
    shutil.rmtree(tmp_path / "bronze" / "scrapes")
    made(tmp_path, tables.SCRAPES)
    told = report(tmp_path)
    assert {row["dropped_series"] for row in told["coverage"]["sources"]} == {None}


def contradicted(places: Sequence[int], agents: tuple[str, str]) -> tuple[Batch, Batch]:
    """Return two agents on one broker: the second reports partition 0 as bad in some windows."""
    one, other = cluster(), Batch(agent=agents[1])
    for row in (*one.runs, *one.scrapes):
        row["agent"] = agents[0]
    for start in (number * WINDOW for number in WHOLE):
        other.scrape("min_isr", start, start + WINDOW)
        value = float(start // WINDOW in places)
        other.run(UNDER, start, start + WINDOW, value, topic="t", partition=0)
    return one, other


@pytest.mark.parametrize("agents", [("a", "b"), ("b", "a")])
def test_agents_that_contradict_each_other_reassure_nobody(
    tmp_path: Path, agents: tuple[str, str]
) -> None:
    """Either agent may be wrong: the bad time counts, and its low bound is 0."""
    facts = facts_of(tmp_path, *contradicted(range(4, 8), agents))
    (objective,) = (row for row in facts["objectives"] if row["name"] == "min-isr")
    (topic,) = objective["subjects"]
    bad_us = 4 * WINDOW * SECOND
    assert (topic["bad_low_us"], topic["bad_us"], topic["bad_high_us"]) == (0, bad_us, bad_us)
    assert objective["status"] == "uncertain"
    assert answer(facts, "min-isr")[0] == "bad"
    said = {row["source"]: row["contradicted_us"] for row in facts["coverage"]["sources"]
            if row["family"] == "min_isr"}  # fmt: skip
    assert said == {"broker-1": bad_us, "broker-2": 0, "broker-3": 0}
    note = "Agents contradict each other on family min_isr of broker-1, up to 20 min"
    detail = monitoring.COVERAGE.detail(facts)
    assert detail is not None
    assert note in plain(detail.note)
    assert note in plain(" ".join(map(texts.plain, summarize(facts).notes)))


def groups(until: dict[str, int]) -> Batch:
    """Return an hour in which groups are reported until a window; the family is always read."""
    batch = cluster("offsets")
    for group, last in until.items():
        for number in WHOLE[:last]:
            start, end = number * WINDOW, (number + 1) * WINDOW
            for bound in ("low", "high"):
                batch.counter(f"{LOST}.{bound}", start, end, 0.0, group=group, topic="t",
                              partition=0)  # fmt: skip
            batch.run("kafka.group.lag", start, end, 0.0, group=group, topic="t")
    return batch


@pytest.mark.parametrize(
    ("until", "state", "status"),
    [
        ({"g": 12, "h": 12}, "good", "met"),
        ({"g": 12, "h": 6}, "good", "met"),  # a group ended
        ({"g": 6, "h": 6}, "partly_known", "uncertain"),
    ],
)
@pytest.mark.parametrize("objectives", [DEFAULT, []])
def test_groups_that_vanish_together_are_unknown(
    tmp_path: Path, until: dict[str, int], state: str, status: str,
    objectives: Sequence[Objective],
) -> None:  # fmt: skip
    facts = facts_of(tmp_path, groups(until), objectives=objectives)
    assert [answer(facts, name)[0] for name in ("lost", "lag")] == [state, state]
    if objectives:
        (objective,) = (row for row in facts["objectives"] if row["name"] == "lost-before-read")
        assert objective["status"] == status


def test_group_whose_lag_is_hidden_throughout_is_unknown(tmp_path: Path) -> None:
    batch = groups({"g": 12, "h": 12})
    batch.runs = [row for row in batch.runs
                  if (row["metric"], row["group"]) != ("kafka.group.lag", "h")]  # fmt: skip
    facts = facts_of(tmp_path, batch)
    assert facts["consumer_lag"]["unknown_us"] == WINDOWS * WINDOW * SECOND
    assert answer(facts, "lag")[0] == "not_known"


def test_min_isr_that_brokers_hid_is_unknown_without_an_objective(tmp_path: Path) -> None:
    batch = cluster()
    batch.runs = [row for row in batch.runs
                  if row["metric"] != UNDER or row["start"] < micros(6 * WINDOW)]  # fmt: skip
    facts = facts_of(tmp_path, batch, objectives=NO_MIN_ISR)
    assert answer(facts, "min-isr") == ("partly_known", pytest.approx(50))
    (topic,) = facts["min_isr"]["topics"]
    assert topic["unknown_us"] == 6 * WINDOW * SECOND


def test_topic_whose_min_isr_is_hidden_throughout_has_no_data(tmp_path: Path) -> None:
    batch = cluster()
    for number in WHOLE:
        batch.run("kafka.topic.partitions", number * WINDOW, (number + 1) * WINDOW, 2.0,
                  topic="other")  # fmt: skip
    facts = facts_of(tmp_path, batch, objectives=NO_MIN_ISR)
    found = {row["topic"]: row["unknown_us"] for row in facts["min_isr"]["topics"]}
    assert found == {"other": WINDOWS * WINDOW * SECOND, "t": 0}
    assert answer(facts, "min-isr")[0] == "partly_known"


@pytest.mark.parametrize(("hidden", "state"), [(0, "good"), (6, "partly_known")])
def test_traffic_that_a_broker_hid_is_not_observed(tmp_path: Path, hidden: int, state: str) -> None:
    batch = cluster("traffic")
    for number in range(WINDOWS + 1):
        start, end = number * WINDOW, (number + 1) * WINDOW
        for source in BROKERS if not 3 <= number < 3 + hidden else BROKERS[1:]:
            for metric in ("bytes_in", "bytes_out", "messages_in"):
                batch.counter(f"kafka.topic.{metric}", start, end, 9.0, topic="t", source=source)
    for source in BROKERS:
        batch.scrape("traffic", WINDOWS * WINDOW, (WINDOWS + 1) * WINDOW, source=source)
    facts = facts_of(tmp_path, batch)
    (topic,) = facts["service"]["topics"]
    assert topic["unknown_us"] == hidden * WINDOW * SECOND
    assert (topic["bytes_in_high"] is None) == bool(hidden)
    assert answer(facts, "traffic")[0] == state


@pytest.mark.parametrize("restarts", [False, True])
def test_answers_that_a_broker_hid_are_no_success(tmp_path: Path, *, restarts: bool) -> None:
    """After a restart it may not have answered anything: Kafka has no counter without events."""
    batch, objectives = cluster("requests"), objective_files.load(objective_files.OPTIONAL)
    for number in WHOLE[:6]:
        for source in BROKERS:
            for metric, labels in ((PRODUCE, [("error", "NONE")]), (f"{PRODUCE}_good", None)):
                batch.counter(metric, number * WINDOW, (number + 1) * WINDOW, 9.0, source=source,
                              labels=labels)  # fmt: skip
    if restarts:
        restart(tmp_path, 6 * WINDOW)
    facts = facts_of(tmp_path, batch, objectives=objectives)
    (objective,) = (row for row in facts["objectives"] if row["name"] == "produce-availability")
    assert objective["status"] == "uncertain"
    for row in objective["subjects"]:
        if restarts:  # only the counts from the last reading to the restart are lost
            assert 0 < row["unknown_us"] < 60 * SECOND
        else:
            assert row["unknown_us"] == 6 * WINDOW * SECOND


def restart(root: Path, at: float) -> None:
    """Add restarts of all brokers to bronze/events."""
    names = tables.EVENTS.column_names
    rows = []
    for source in BROKERS:
        row = dict.fromkeys(names)
        row.update(date=micros(at) // 86_400_000_000, cluster=CLUSTER, source=source)
        row.update(at=micros(at), kind="source_restart", new=str(micros(at)))
        row.update(agent="agent-1", batch=1)
        rows.append(tuple(row[name] for name in names))
    delta = made(root, tables.EVENTS)
    write_deltalake(delta, arrow.to_arrow(tables.EVENTS, rows), mode="append")


def plain(text: str) -> str:
    """Return a text without marks of names, with plain spaces."""
    return text.translate({0xA0: " ", 0x2068: None, 0x2069: None})
