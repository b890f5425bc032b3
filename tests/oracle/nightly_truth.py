"""Reports of clusters that are known at every microsecond: `make bench-truth` has a hundred.

Apart from ``make test``: agents live through some hours in simulated time, and Spark rolls up what
they delivered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse.core import lake as lakes
from lakehouse.engines.spark_with_delta_rs import SparkWithDeltaRs
from lakehouse.report.facts.build import facts
from lakehouse.rollup.run import rollup
from tests.oracle.objectives import OBJECTIVES
from tests.truth import agents
from tests.truth.replay import PERIOD, findings
from tests.truth.schedule import schedule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.truth.findings import Findings

pytestmark = pytest.mark.spark

TRUTHS = (0, 1, 2, 3, 4, 9, 12)
"""Seeds of schedules of every kind."""


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Findings:
    root, spools = tmp_path_factory.mktemp("truth"), tmp_path_factory.mktemp("spools")
    seen = [agents.live(schedule(seed), root, spools) for seed in TRUTHS]
    engine = SparkWithDeltaRs(lakes.at(str(root)), lambda: spark, {})
    rollup(engine, OBJECTIVES)
    told = [facts(engine, OBJECTIVES, PERIOD, cluster=schedule(seed).cluster) for seed in TRUTHS]
    return findings(TRUTHS, seen, told)


def test_the_schedules_are_of_every_kind():
    assert {schedule(seed).kind for seed in TRUTHS} == {"calm", "late", "troubled"}


def test_every_interval_of_every_report_holds_what_is_true(found: Findings):
    assert found.wrong == []
    assert found.figures()["contained_percent"] == 100


def test_nobody_looked_away_for_longer_than_the_floor(found: Findings):
    apart = max(one.apart_us["min_isr"] for one in found.seen)
    assert max(found.floors_us) >= apart > 10_000_000


def test_what_was_wholly_seen_is_bounded_by_two_intervals(found: Findings):
    assert found.figures()["incidents_measured"] > 20
    assert found.figures()["width_intervals"] < 2.1
