"""What is read of hours and of finest windows, of gold made by hand."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.core.periods import Period, instant, span
from lakehouse.engines.gold_reader import GoldRows
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import PeriodError
from lakehouse.report.facts.gold import Gold
from lakehouse.slo.attainment import Options, read
from lakehouse.slo.openslo import objective_files
from tests import gold_builder
from tests.lake_builder import BASE, CLUSTER, micros

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.engines.relation import Relation


SECOND: Final = 1_000_000
HOUR: Final = 3600 * SECOND
WINDOW: Final = 900
ISR: Final = "kafka.partition.under_min_isr"
TIMES: Final = ("good_us", "bad_us", "bad_low_us", "bad_high_us", "seen_us", "before_us")
PERIOD: Final = Period(BASE, BASE + dt.timedelta(hours=2))


def row(seconds: int, **values: Any) -> dict[str, Any]:
    return {"cluster": CLUSTER, "window_start": BASE + dt.timedelta(seconds=seconds), **values}


def sli(seconds: int, *times: int | None) -> dict[str, Any]:
    in_us = (None if one is None else one * SECOND for one in times)
    return row(seconds, objective="min-isr", topic="t", **dict(zip(TIMES, in_us, strict=True)))


def coverage(at: dt.datetime) -> dict[str, Any]:
    return {
        "cluster": CLUSTER, "window_start": at, "source": "broker-1", "family": "min_isr",
        "outcome": "ok", "outcome_us": HOUR, "scrapes": 1,
    }  # fmt: skip


@pytest.fixture(scope="module")
def gold(tmp_path_factory: pytest.TempPathFactory) -> Gold:
    """An hour that was good throughout, and one that was bad in its second window."""
    root: Path = tmp_path_factory.mktemp("rows")
    gold_builder.put(
        root, tables.SLI, sli(0, 3600, 0, 0, 0, 3600, 0), sli(3600, 1000, 800, 700, 900, 1800, 0)
    )
    gold_builder.put(
        root, tables.WINDOWS["sli"], sli(3600, 900, 0, 0, 0, 900, 0),
        sli(4500, 100, 800, 700, 900, 900, 30),
    )  # fmt: skip
    low = {
        "series_affected_us": 5 * SECOND,
        "series_affected_low_us": 0,
        "series_affected_high_us": 9 * SECOND,
    }
    under: dict[str, Any] = {"metric": ISR, "topic": "t", "partition_id": 0, **low}
    gold_builder.put(
        root, tables.PARTITIONS, row(3600, **under, series=1, value_max=2.0),
        row(7200, **under, series_before_us=3 * SECOND),
    )  # fmt: skip
    gold_builder.put(
        root, tables.WINDOWS["partitions"], row(3600, **under, series=1, value_max=1.0,
        value_min=1.0),
        row(4500, **under, series=2, value_max=2.0, value_min=0.5, known_wrong=True),
        row(5400, **under), row(6300, **under),
    )  # fmt: skip
    for table in (tables.TOPICS, tables.CLIENTS):
        gold_builder.put(root, table)
    return Gold(LocalEngine(Lake(str(root))), CLUSTER, PERIOD, WINDOW)


def test_windows_of_an_hour_that_was_good_throughout_are_good(gold: Gold) -> None:
    wanted = Period(BASE + dt.timedelta(seconds=1800), PERIOD.end)
    rows = gold.rows.ask(
        "SELECT r.* FROM {rows} r ORDER BY r.window_start",
        rows=gold.rows.windows(tables.SLI, wanted),
    )
    told = [(instant(one["window_start"]).minute, *(one[name] for name in TIMES)) for one in rows]
    good = (WINDOW * SECOND, 0, 0, 0, WINDOW * SECOND, 0)
    bad = tuple(one * SECOND for one in (100, 800, 700, 900, 900, 30))
    assert told == [(30, *good), (45, *good), (0, *good), (15, *bad)]


def test_longer_windows_are_sums_of_shorter_ones(gold: Gold) -> None:
    halves = sorted(gold.by_window(tables.PARTITIONS, 1800), key=lambda one: one["window_start"])
    assert [one["window_start"] for one in halves] == [micros(3600), micros(5400)]
    assert [one["series_affected_high_us"] for one in halves] == [18 * SECOND] * 2
    first = halves[0]
    assert (first["series"], first["value_min"], first["value_max"]) == (2, 0.5, 2.0)
    assert first["known_wrong"] is True
    assert not {"value_mean", "series_before_us"} & first.keys(), (
        "of several windows they say nothing"
    )
    (day,) = gold.by_window(tables.PARTITIONS, 86_400)
    assert (day["window_start"], day["series_affected_us"]) == (micros(-10 * 3600), 5 * SECOND)


def test_first_sight_at_period_end_is_in_the_next_hour(gold: Gold) -> None:
    ((before,), (after,)) = (
        [row for of_one in found(tables.PARTITIONS).values() for row in of_one.values()]
        for found in (gold.by_subject, gold.raised)
    )
    assert before["partition_id"] == 0
    highs = {"series_affected_high_us": before["series_affected_high_us"] + 3 * SECOND}
    assert after == before | highs


def test_time_in_whole_hours_is_that_of_its_windows(gold: Gold) -> None:
    """Without seconds in which anything was planned it is summed from hours, with them not."""
    gold_builder.put(
        gold.engine.lake.root, tables.SUBJECTS,
        {"cluster": CLUSTER, "kind": "topic", "topic": "t", "first_seen": PERIOD.start,
         "last_seen": PERIOD.end},
    )  # fmt: skip
    asked = [one for one in objective_files.load() if one.name == "min-isr"]
    options = Options(window_seconds=WINDOW)
    whole, half = (
        read(gold.engine, asked, Period(start, PERIOD.end), micros(9000), options=options)
        for start in (PERIOD.start, PERIOD.start + dt.timedelta(minutes=30))
    )
    assert [tuple(one.times) for one in whole] == [
        (4600 * SECOND, 800 * SECOND, 700 * SECOND, 900 * SECOND)
    ]
    assert [tuple(one.times) for one in half] == [
        (2800 * SECOND, 800 * SECOND, 700 * SECOND, 900 * SECOND)
    ]


def test_request_for_expired_windows_is_refused(tmp_path: Path) -> None:
    old, new = (dt.datetime(2026, month, 2, tzinfo=dt.UTC) for month in (3, 11))
    gold_builder.put(tmp_path, tables.COVERAGE, coverage(old), coverage(new))
    gold_builder.put(tmp_path, tables.WINDOWS["coverage"], coverage(new))
    rows = GoldRows(LocalEngine(Lake(str(tmp_path))), WINDOW * SECOND)

    def number(relation: Relation) -> int:
        return len(rows.engine.collect(relation))

    lost = span("2026-03-02T00:00Z", "2026-03-03T00:00Z")
    assert number(rows.whole(tables.COVERAGE, lost)) == 1, "hours are there"
    with pytest.raises(PeriodError, match="gold has only whole hours for 2026-03-02"):
        rows.windows(tables.COVERAGE, lost)
    kept = span("2026-11-01T12:00Z", "2026-11-03T00:00Z")
    assert number(rows.windows(tables.COVERAGE, kept)) == 1, "there was nothing before"
