"""Gold of an older version in a catalog: other names, and all tables in one schema."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import pytest

from lakehouse import tables
from lakehouse.core import table_faults
from lakehouse.core.lake import Lake
from lakehouse.core.table_faults import older
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.errors import OlderGoldError
from lakehouse.kernel import arrow_types
from lakehouse.rollup.upgrade import upgrade

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakehouse.tables import Table

pytestmark = pytest.mark.spark

GOLD: Final = "spark_catalog.taken_over"
CHOSEN: Final = (
    tables.SOURCES, tables.WINDOWS["sources"], tables.TOPICS, tables.REJECTED, tables.SLA,
    tables.PROGRESS,
)  # fmt: skip
"""Tables with another name, with another place, with both, and with neither."""
VALUES: Final[dict[str, Any]] = {
    "string": "it's", "int": 3, "bigint": 3_600_000_000, "double": 0.1, "boolean": True,
    "date": dt.date(2026, 11, 16), "timestamp": 1_795_000_000_000_000,
}  # fmt: skip


@pytest.fixture(autouse=True)
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the upgrade to these tables and three missing ones: Spark reads each separately."""
    known = {*CHOSEN, *tables.ROLLUP_STATE, tables.LAGS}
    few = [table for table in table_faults.UPGRADED if table in known]
    monkeypatch.setattr(table_faults, "UPGRADED", few)


@pytest.fixture
def engine(spark: SparkSession) -> Iterator[SparkEngine]:
    every = [f"{GOLD}{shelf}" for shelf in ("", "_windows", "_state")]
    for one in every:
        spark.sql(f"CREATE SCHEMA {one}")
    yield SparkEngine(spark, Lake("/nowhere", GOLD))
    for one in every:
        spark.sql(f"DROP SCHEMA {one} CASCADE")


def values(table: Table) -> list[Any]:
    return [VALUES.get(column.type) for column in table.columns]


def make_older(engine: SparkEngine, table: Table) -> None:
    before = older(table)
    engine.create(before)
    engine.write(before, arrow_types.rows(arrow_types.of_table(before), [values(before)]))


def places(spark: SparkSession) -> set[str]:
    return {
        f"{row['namespace']}.{row['tableName']}"
        for shelf in ("", "_windows", "_state")
        for row in spark.sql(f"SHOW TABLES IN {GOLD}{shelf}").collect()
        if not row["isTemporary"]  # of the session, in every schema
    }


def test_gold_in_a_catalog_gets_its_names_and_its_schemas(
    spark: SparkSession, engine: SparkEngine
) -> None:
    for table in CHOSEN:
        make_older(engine, table)
    assert places(spark) == {f"taken_over.{older(table).name}" for table in CHOSEN}
    with pytest.raises(OlderGoldError, match="Run jmxlake upgrade LAKE first"):
        engine.rows(tables.TOPICS)

    assert upgrade(engine) == len(CHOSEN)
    made = (*CHOSEN, tables.LEASE)
    named = {f"{engine.lake.schema_of(one)}.{one.name}" for one in made}
    assert places(spark) == {one.removeprefix("spark_catalog.") for one in named}
    for table in CHOSEN:
        (row,) = engine.collect(engine.rows(table)).select(table.column_names).to_pylist()
        wanted = dict(zip(table.column_names, values(table), strict=True))
        assert row == wanted, table.name
        detail = engine.detail(table)
        assert detail is not None
        assert list(detail.columns) == list(table.column_names)
    assert upgrade(engine) == 0


@pytest.mark.nightly
def test_gold_on_a_path_that_only_spark_reads_keeps_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    engine = SparkEngine(spark, Lake(str(tmp_path)))
    for table in (tables.SOURCES, tables.TOPICS):
        make_older(engine, table)
    assert upgrade(engine) == 2
    assert upgrade(engine) == 0, "what is left of the older table is not taken for it"
    for table in (tables.SOURCES, tables.TOPICS):
        (row,) = engine.collect(engine.rows(table)).select(table.column_names).to_pylist()
        assert row == dict(zip(table.column_names, values(table), strict=True))
