"""Trends on Spark: the weeks of gold/sli as one trend per objective and subject."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from lakehouse import lake as lakes
from lakehouse import sla, slo, tables
from lakehouse.periods import micros
from lakehouse.trends import weeks
from tests.lake_builder import BASE, CLUSTER
from tests.rollups import DAY, hours, quick

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

WEEK = 7 * DAY
HOUR_US = 3_600_000_000


def test_weeks_are_summed_from_gold_and_what_nobody_saw_is_unknown(
    spark: SparkSession, tmp_path: Path
):
    """A topic is bad for 30 s in a window of three Mondays, and nobody looks in between."""
    hours(1, -3 * WEEK, -WEEK, 0.0).commit(tmp_path)
    hours(2, -WEEK, cluster="cluster-b", agent="agent-2").commit(tmp_path)
    quick(spark, tmp_path, of=(tables.BROKERS, tables.COVERAGE, tables.SLI, tables.SUBJECTS))
    lake = lakes.at(str(tmp_path))
    known = [one for one in sla.subjects(spark, lake) if one.cluster == CLUSTER]
    now_us = micros(BASE) + HOUR_US
    end = BASE + dt.timedelta(hours=1)
    found = weeks.read(spark, lake, slo.load(), end, now_us, known)
    (trend,) = (one for one in found if one.objective.name == "min-isr")
    assert (trend.subject.cluster, trend.subject.topic) == (CLUSTER, "t")
    assert trend.weeks[:9] == (None,) * 9
    first, silent, later, last = trend.weeks[9:]
    assert first is not None
    assert silent is not None
    assert later is not None
    assert last is not None
    bad = [one.bad_us for one in (first, silent, later, last)]
    assert bad == [30_000_000, 0, 30_000_000, 30_000_000]
    assert (silent.share, silent.unknown_us) == (None, 7 * 24 * HOUR_US)
    assert (silent.low, silent.high) == (0.0, 1.0)
    assert later.expected_us == 7 * 24 * HOUR_US
    assert later.share == 1.0, "of the seen time: what is not claimed is not good"
    assert [one.is_over for one in (first, later, last)] == [True, True, False]
    assert trend.known == [None] * 13
