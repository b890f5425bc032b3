"""Unobserved time in reports of small lakes: unknown is never zero and never good."""

from __future__ import annotations

import datetime as dt
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

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
from tests.lake_builder import BASE, Batch, made

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WINDOW: Final = 300
WINDOWS: Final = 12
SECOND: Final = 1_000_000
WHOLE: Final = range(WINDOWS)
BROKERS: Final = ("broker-1", "broker-2", "broker-3")
UNDER: Final = "kafka.partition.under_min_isr"
COUNTED: Final = "kafka.broker.under_min_isr_partitions"
SIZE: Final = "kafka.log.size"
THROTTLE: Final = "kafka.client.produce.throttle_time"


def facts_of(root: Path, batch: Batch) -> Any:
    """Return the facts of a report on an hour."""
    rollups.prepare(root)
    batch.commit(root)
    rollup(LocalEngine(lakes.at(str(root))), objective_files.load(), Wanted(tidy="never"))
    return report(root)


def report(root: Path) -> Any:
    """Return the facts of a lake that is rolled up."""
    engine, objectives = LocalEngine(lakes.at(str(root))), objective_files.load()
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


def plain(text: str) -> str:
    """Return a text without marks of names, with plain spaces."""
    return text.translate({0xA0: " ", 0x2068: None, 0x2069: None})
