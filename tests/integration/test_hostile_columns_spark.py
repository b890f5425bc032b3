"""Columns that nobody declared, through Spark: their names never enter its SQL."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse import tables
from lakehouse.core import lake as lakes
from lakehouse.engines.engine import LeaseRow
from lakehouse.errors import LogExpiredError
from tests import hostile_columns, rollups

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakehouse.engines.spark_engine import SparkEngine
    from lakehouse.tables import Table

pytestmark = pytest.mark.spark

CHANGED = (tables.RUNS, tables.SUBJECTS, tables.LEASE)
"""A table of each kind. The local engine reads every table (tests/unit/test_hostile_columns.py)."""


@pytest.fixture(scope="module")
def rolled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a lake that is rolled up."""
    root = tmp_path_factory.mktemp("rolled")
    rollups.hours(1, 0).commit(root)
    rollups.prepare(root)
    rollups.local(root)
    return root


@pytest.fixture
def engine(spark: SparkSession, rolled: Path, tmp_path: Path) -> SparkEngine:
    """The engine of a copy of that lake."""
    from lakehouse.engines.spark_engine import SparkEngine  # noqa: PLC0415 - it imports Spark

    shutil.copytree(rolled, tmp_path, dirs_exist_ok=True)
    return SparkEngine(spark, lakes.at(str(tmp_path)))


def rows(engine: SparkEngine, table: Table) -> list[dict[str, Any]]:
    return sorted(engine.collect(engine.rows(table)).to_pylist(), key=repr)


def test_spark_uses_declared_columns_among_hostile_ones(
    engine: SparkEngine, tmp_path: Path
) -> None:
    before = {table: rows(engine, table) for table in CHANGED}
    for table in CHANGED:
        hostile_columns.add(tmp_path, table, *hostile_columns.NAMES)
    assert {table: rows(engine, table) for table in CHANGED} == before
    subjects = engine.collect(engine.rows(tables.SUBJECTS))
    engine.write(tables.SUBJECTS, subjects, "cluster = 'cluster-a'")
    assert rows(engine, tables.SUBJECTS) == before[tables.SUBJECTS]
    engine.write(tables.SUBJECTS, subjects)
    assert len(rows(engine, tables.SUBJECTS)) == 2 * len(before[tables.SUBJECTS])
    assert engine.swap(LeaseRow(), LeaseRow("id", "holder", 1, 2))


def test_spark_change_feed_ignores_hostile_columns(engine: SparkEngine, tmp_path: Path) -> None:
    names = [name for name in hostile_columns.NAMES if name.lower() != "_change_type"]
    hostile_columns.add(tmp_path, tables.RUNS, *names)
    found = engine.collect(engine.rows(tables.RUNS, inserted=range(3)))
    assert found.num_rows == len(rows(engine, tables.RUNS))
    assert set(found.column_names) == {*tables.RUNS.column_names, "epoch_hour", "misdated"}


def test_spark_reserved_column_is_an_error(engine: SparkEngine, tmp_path: Path) -> None:
    hostile_columns.add(tmp_path, tables.RUNS, "_Change_Type")
    name = re.escape(engine.lake.name(tables.RUNS))
    with pytest.raises(LogExpiredError, match=rf"(?i){name}: a column _change_type prevents"):
        engine.collect(engine.rows(tables.RUNS, inserted=range(3)))
