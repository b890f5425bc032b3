"""One lake for all of these tests, rolled up once: 200 fleets, and a cluster for each story."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from lakehouse import lake as lakes
from lakehouse import rollup
from tests.lake_builder import Batch
from tests.oracle import decoded, duck, fleets, gold, stories
from tests.oracle.objectives import OBJECTIVES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.oracle.plain import Rows
    from tests.oracle.rows import Bronze

FLEETS = 200


@pytest.fixture(scope="session")
def unrolled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake with its bronze alone."""
    root = tmp_path_factory.mktemp("oracle")
    whole = Batch()
    for made in (*map(fleets.fleet, range(FLEETS)), *stories.all_stories()):
        whole.runs += made.runs
        whole.members += made.members
        whole.scrapes += made.scrapes
    whole.commit(root)
    return root


@pytest.fixture(scope="session")
def bronze(unrolled: Path) -> Bronze:
    return decoded.read(unrolled, time.time_ns() // 1000)


@pytest.fixture(scope="session")
def by_python(bronze: Bronze) -> dict[str, Rows]:
    return gold.wanted(bronze, OBJECTIVES)


@pytest.fixture(scope="session")
def by_duckdb(unrolled: Path) -> dict[str, Rows]:
    return duck.wanted(unrolled, time.time_ns() // 1000)


@pytest.fixture(scope="session")
def rolled(spark: SparkSession, unrolled: Path) -> Path:
    """The lake with its gold."""
    rollup.rollup(spark, lakes.at(str(unrolled)), OBJECTIVES)
    return unrolled
