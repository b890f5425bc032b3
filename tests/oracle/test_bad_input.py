"""Rows that cannot be used are set aside with a reason, and harm nothing."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING

import pytest

from lakehouse import lake as lakes
from lakehouse import periods, tables
from lakehouse.report import gather
from lakehouse.report.from_bronze import bad_runs
from tests.oracle import gold, stories

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

REASONS = {
    "it ends before it starts": 2,  # one of them of the agents' own account
    "it crosses a window of 5m": 1,
    "its date is not that of its start": 1,
    "an edge is negative": 1,
    "an edge is longer than a day": 1,
    "the value is no number": 1,
    "no metric can have this name": 1,
    "a name is empty or too long": 1,
    "topic is missing": 1,
    "the partition is negative": 1,
    "it stands for no series": 1,
    "it stands for several series without a set": 1,
    "its member set is not known": 1,
    "its member set is told in several ways": 1,
    "it is not what its member set holds": 1,
    "it folds series that are not zero": 1,
}


def test_every_bad_row_is_set_aside_with_its_reason(rolled: Path):
    found: dict[str, int] = {}
    reason, cluster = (gold.KEYS["rejected"].index(name) for name in ("reason", "cluster"))
    for key, figures in gold.told(rolled, "rejected").items():
        if key[cluster] == "bad_input":
            found[key[reason]] = found.get(key[reason], 0) + figures["rows"]
    assert found == REASONS


def test_good_rows_beside_bad_ones_count_as_if_these_were_not_there(rolled: Path):
    rows = {
        (key[4], key[5]): figures
        for key, figures in gold.told(rolled, "topics").items()
        if key[0] == "5m" and key[2] == "bad_input"
    }
    assert set(rows) == {(stories.ISR, "t"), ("kafka.partition.unavailable", "t")}
    for figures in rows.values():
        assert (figures["observed_us"], figures["any_high_us"]) == (900_000_000, 0)


def test_a_row_of_the_future_is_set_aside_where_it_lies(rolled: Path):
    rejected = [key for key in gold.told(rolled, "rejected") if key[2] == "in_the_future"]
    assert [key[4] for key in rejected] == ["it lies in the future"]
    told = [key for key in gold.told(rolled, "partitions") if key[2] == "in_the_future"]
    assert {key[1] for key in told} == {"2021", "2021-01", "2021-01-04"}


def test_the_report_counts_what_could_not_be_used(spark: SparkSession, rolled: Path):
    week = periods.week_of(stories.MONDAY)
    known = gather.Gold(spark, lakes.at(str(rolled)), "bad_input", week, 300)
    assert known.rejected() == sum(REASONS.values())


def test_no_bad_row_is_an_incident(spark: SparkSession, rolled: Path):
    week = periods.week_of(stories.MONDAY)
    known = gather.Gold(spark, lakes.at(str(rolled)), "bad_input", week, 300)
    assert bad_runs(known) == []


def test_a_row_of_the_future_is_no_incident_yet(spark: SparkSession, rolled: Path):
    """Not even to the report of the week in which it lies."""
    lake = lakes.at(str(rolled))
    (start,) = (key[3] for key in gold.told(rolled, "rejected") if key[2] == "in_the_future")
    week = periods.week_of(periods.instant(start))
    committed = periods.instant(start) - dt.timedelta(days=1)
    known = gather.Gold(spark, lake, "in_the_future", week, 300, committed)
    assert known.bronze(tables.RUNS).collect() == []
    assert bad_runs(known) == []
    later = dataclasses.replace(known, committed=week.end)
    assert len(later.bronze(tables.RUNS).collect()) == 1
    assert bad_runs(later) == [], "gold, rolled up earlier, does not know it"


def test_a_report_of_any_week_counts_rows_of_the_future(spark: SparkSession, rolled: Path):
    week = periods.week_of(stories.MONDAY)
    assert gather.Gold(spark, lakes.at(str(rolled)), "in_the_future", week, 300).rejected() == 1
