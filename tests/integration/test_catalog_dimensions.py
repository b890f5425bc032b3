"""Dimensions of gold in a catalog: Spark writes the same rows as delta-rs on a path."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.kernel import arrow_types
from lakehouse.report.owners import Owner
from lakehouse.rollup import dimensions
from lakehouse.slo.openslo import objective_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakehouse.engines.engine import Engine

pytestmark = pytest.mark.spark

GOLD: Final = "spark_catalog.with_dimensions"
SHIPPED: Final = objective_files.load()
NOON_US: Final = int(dt.datetime(2026, 11, 16, 12, tzinfo=dt.UTC).timestamp()) * 1_000_000
TIMES: Final = {"valid_from", "valid_until"}


@pytest.fixture
def in_catalog(spark: SparkSession) -> Iterator[SparkEngine]:
    schemas = (GOLD, f"{GOLD}_state")
    for one in schemas:
        spark.sql(f"CREATE SCHEMA {one}")
    yield SparkEngine(spark, Lake("/nowhere", GOLD))
    for one in schemas:
        spark.sql(f"DROP SCHEMA {one} CASCADE")


def filled(engine: Engine) -> dict[str, list[str]]:
    """Write the dimensions twice, then after a change; return their rows without times."""
    for table in (*tables.DIMENSIONS, tables.SUBJECTS, tables.LEASE):
        engine.create(table)
    subject = {"cluster": "c", "kind": "client", "user_name": "it's", "client_id": "a\\b"}
    row = dict.fromkeys(tables.SUBJECTS.column_names) | subject
    row |= {"first_seen": NOON_US, "last_seen": NOON_US}
    engine.write(
        tables.SUBJECTS, arrow_types.rows(arrow_types.of_table(tables.SUBJECTS), [[*row.values()]])
    )
    first, *others = SHIPPED
    changes = []
    for objectives in (SHIPPED, SHIPPED, (replace(first, target=0.5), *others)):
        dimensions.update(engine, objectives, lambda: None, changes.append)
    assert changes == ["metrics", "objectives", "objectives"]
    for team in ("x", "x", "y"):
        dimensions.update_owners(engine, lambda _, team=team: Owner(team)._asdict())
    return {
        table.name: sorted(
            repr([row[name] for name in table.column_names if name not in TIMES])
            for row in engine.collect(engine.rows(table)).to_pylist()
        )
        for table in tables.DIMENSIONS
    }


def test_spark_writes_what_delta_rs_writes(in_catalog: SparkEngine, tmp_path: Path) -> None:
    found = filled(in_catalog)
    assert found == filled(LocalEngine(Lake(str(tmp_path))))
    assert len(found["objectives"]) == len(SHIPPED) + 1
    assert len(found["owners"]) == 1
    assert "'y'" in found["owners"][0]
