"""Lakes with a cluster for each story: one with some fleets, which Spark rolls up, and one without.

The kernel's rows of ten times as many are tested without Spark (tests/unit/kernel/test_fleets.py).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from lakehouse.core import lake as lakes
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.spark_with_delta_rs import SparkOnPath
from lakehouse.rollup.run import rollup
from tests.kernel_inputs import together
from tests.oracle import decoded, fleets, gold, stories
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
    rollup(SparkOnPath(lakes.at(str(root)), lambda: spark, {}), OBJECTIVES)
    return root


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the lake of the stories, rolled up without Spark: tests of reports read its gold."""
    root = tmp_path_factory.mktemp("stories")
    together(stories.all_stories()).commit(root)
    rollup(LocalEngine(lakes.at(str(root))), OBJECTIVES)
    return root


@pytest.fixture(scope="session")
def right(rolled: Path) -> dict[str, Rows]:
    return gold.wanted(decoded.read(rolled, time.time_ns() // 1000), OBJECTIVES)
