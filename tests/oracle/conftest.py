"""Lakes with a cluster for each story: one with some fleets, which Spark rolls up, and one without.

tests/unit/kernel/test_fleets.py tests ten times as many fleets without Spark.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from deltalake import write_deltalake

from collector.delivery import arrow
from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.spark_with_delta_rs import SparkWithDeltaRs
from lakehouse.rollup.run import rollup
from tests.kernel_inputs import together
from tests.lake_builder import made
from tests.oracle import decoded, fleets, gold, meaning, stories
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.oracle.plain import Rows

FLEETS = 20


@pytest.fixture(scope="session")
def rolled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the lake of fleets and stories with its gold."""
    root = tmp_path_factory.mktemp("oracle")
    together((*map(fleets.fleet, range(FLEETS)), *stories.all_stories())).commit(root)
    _write_traits(root)
    rollup(SparkWithDeltaRs(lakes.at(str(root)), lambda: spark, {}), OBJECTIVES)
    return root


def _write_traits(root: Path) -> None:
    """Write the traits of own metrics; those of shipped ones are known without an agent."""
    rows = [("test", *one, "agent-1") for one in meaning.OWN]
    content = arrow.to_arrow(tables.METRIC_TRAITS, rows)
    write_deltalake(made(root, tables.METRIC_TRAITS), content, mode="append")


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the lake of the stories, rolled up without Spark: tests of reports read its gold."""
    root = tmp_path_factory.mktemp("stories")
    together(stories.all_stories()).commit(root)
    _write_traits(root)
    rollup(LocalEngine(lakes.at(str(root))), OBJECTIVES)
    return root


@pytest.fixture(scope="session")
def right(rolled: Path) -> dict[str, Rows]:
    return gold.wanted(decoded.read(rolled, time.time_ns() // 1000), OBJECTIVES)
