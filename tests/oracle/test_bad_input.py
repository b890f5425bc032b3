"""What reports say of rows that cannot be used: how many they are, and nothing else."""

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

BAD_ROWS = 17
"""Of the story ``bad_input``: one for each reason, and one of the agents' own account."""


def test_the_report_counts_what_could_not_be_used(spark: SparkSession, rolled: Path):
    week = periods.week_of(stories.MONDAY)
    known = gather.Gold(spark, lakes.at(str(rolled)), "bad_input", week, 300)
    assert known.rejected() == BAD_ROWS


def test_no_bad_row_is_an_incident(spark: SparkSession, rolled: Path):
    week = periods.week_of(stories.MONDAY)
    known = gather.Gold(spark, lakes.at(str(rolled)), "bad_input", week, 300)
    assert bad_runs(known) == []


def test_a_row_of_the_future_is_no_incident_yet(spark: SparkSession, rolled: Path):
    """Not even to the report of the week in which it lies."""
    lake = lakes.at(str(rolled))
    (start,) = (key[1] for key in gold.told(rolled, "rejected") if key[0] == "in_the_future")
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
