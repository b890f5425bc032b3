"""Trends: the weeks of gold/sli as one trend per objective and subject."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from lakehouse.core import lake as lakes
from lakehouse.core.periods import micros
from lakehouse.engines.gold_reader import GoldRows, subjects
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.slo import trends
from lakehouse.slo.openslo import objective_files
from tests.lake_builder import BASE, CLUSTER, Batch
from tests.rollups import DAY, HOUR, ISR, hours, local

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.core.subjects import Subject

pytestmark = pytest.mark.reads

WEEK = 7 * DAY
HOUR_US = 3_600_000_000


def trends_of(
    engine: LocalEngine, end: dt.datetime, now_us: int, known: list[Subject]
) -> list[trends.Trend]:
    gold, objectives = GoldRows(engine, 300_000_000), objective_files.load()
    found = trends.read_weeks(gold, objectives, trends.weeks_until(end), now_us, known)
    return trends.join(found, now_us)


def test_trend_weeks_are_sums_and_unobserved_is_unknown(tmp_path: Path):
    """A topic is bad for 30 s in a window of three Mondays, and nobody looks in between."""
    hours(1, -3 * WEEK, -WEEK, 0.0).commit(tmp_path)
    hours(2, -WEEK, cluster="cluster-b", agent="agent-2").commit(tmp_path)
    local(tmp_path)
    engine = LocalEngine(lakes.at(str(tmp_path)))
    known = [one for one in subjects(engine) if one.cluster == CLUSTER]
    now_us = micros(BASE) + HOUR_US
    end = BASE + dt.timedelta(hours=1)
    found = trends_of(engine, end, now_us, known)
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
    assert (silent.share_low, silent.share_high) == (0.0, 1.0)
    assert later.expected_us == 7 * 24 * HOUR_US
    assert later.share == 1.0, "of the seen time: what is not claimed is not good"
    assert [one.is_over for one in (first, later, last)] == [True, True, False]
    assert trend.known == [None] * 13


def test_first_sight_at_week_start_widens_the_week_before(tmp_path: Path):
    made, monday = Batch(), -10 * HOUR
    made.zeros(ISR, -WEEK, -WEEK + 300, "t", [0])
    made.run(ISR, monday + 3, monday + 13, 1.0, topic="t", partition=0, lead=8)
    made.commit(tmp_path)
    local(tmp_path)
    engine = LocalEngine(lakes.at(str(tmp_path)))
    end, known = BASE + dt.timedelta(hours=1), subjects(engine)
    found = trends_of(engine, end, micros(BASE) + HOUR_US, known)
    (trend,) = (one for one in found if one.objective.name == "min-isr")
    before, last = trend.weeks[-2:]
    assert before is not None
    assert last is not None
    assert (before.bad_us, before.bad_high_us) == (0, 5_000_000)
    assert (last.bad_us, last.bad_high_us) == (10_000_000, 18_000_000)
