"""Gold in a catalog: which schema has a table, and how its files are laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.core.periods import HOUR_US
from lakehouse.engines.relation import select
from lakehouse.engines.spark_engine import SparkEngine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from lakehouse.engines.relation import Relation

pytestmark = pytest.mark.spark

GOLD = "spark_catalog.laid_out"
CREATED = (tables.TOPICS, tables.WINDOWS["topics"], tables.LAGS, tables.SLA, tables.LEASE)


@pytest.fixture
def schemas(spark: SparkSession) -> Iterator[None]:
    every = [f"{GOLD}{shelf}" for shelf in ("", "_windows", "_state")]
    for one in every:
        spark.sql(f"CREATE SCHEMA {one}")
    yield
    for one in every:
        spark.sql(f"DROP SCHEMA {one} CASCADE")


@pytest.fixture
def engine(spark: SparkSession, schemas: None) -> SparkEngine:
    assert schemas is None
    return SparkEngine(spark, Lake("/nowhere", GOLD))


def detail(spark: SparkSession, engine: SparkEngine, table: tables.Table) -> dict[str, Any]:
    (row,) = spark.sql(f"DESCRIBE DETAIL {engine.lake.name(table)}").collect()
    return dict(row.asDict())


def lags(*hours: int) -> Relation:
    """A row an hour since 1970."""
    rows = " UNION ALL ".join(
        f"SELECT DATE'1970-01-01' AS date, 'c' AS cluster, {hour * HOUR_US}L AS window_start, "
        f"'m' AS metric, 't' AS topic, 's' AS source, {hour * HOUR_US}L AS ended_at, "
        f"{hour}e0 AS value_last"
        for hour in hours
    )
    return select(rows)


def test_catalog_clusters_managed_tables_only(
    spark: SparkSession, engine: SparkEngine, tmp_path: Path
) -> None:
    for table in CREATED:
        engine.create(table)
        found = detail(spark, engine, table)
        assert found["name"] == f"{engine.lake.schema_of(table)}.{table.name}"
        laid_out = (found["partitionColumns"], found["clusteringColumns"])
        clustered = list(table.cluster_by)
        assert laid_out == ([] if clustered else list(table.partition_by), clustered)
        spark.sql(f"DROP TABLE {engine.lake.name(table)}")
    external = SparkEngine(spark, Lake("/nowhere", GOLD, gold_root=str(tmp_path)))
    for table in CREATED:
        external.create(table)
        found = detail(spark, external, table)
        assert found["partitionColumns"] == list(table.partition_by)
        assert found["clusteringColumns"] == []
        assert found["location"] == f"file:{tmp_path}/{table.name}"


def test_clustered_table_is_written_compacted_and_readable(
    spark: SparkSession, engine: SparkEngine
) -> None:
    engine.create(tables.LAGS)
    for hour in range(4):
        engine.write(tables.LAGS, lags(hour))
    third = "date IN ('1970-01-01') AND (window_start >= '1970-01-01T02:00:00+00:00' AND "
    third += "window_start < '1970-01-01T03:00:00+00:00')"
    engine.write(tables.LAGS, lags(2, 2), third)
    engine.compact(tables.LAGS)
    found = detail(spark, engine, tables.LAGS)
    assert found["numFiles"] == 1
    place = found["location"].removeprefix("file:")
    assert values(place) == [0, 1, 2, 2, 3]
    engine.write(tables.LAGS, None, "value_last = 2")
    engine.rebuild(tables.LAGS, select("SELECT * FROM {old}", old=lags(5, 6)))
    assert values(place) == [5, 6]
    again = detail(spark, engine, tables.LAGS)
    assert again["clusteringColumns"] == list(tables.LAGS.cluster_by)
    assert again["description"] == tables.LAGS.comment
    fields = DeltaTable(place).schema().fields
    assert {one.name: one.metadata.get("comment") for one in fields} == {
        one.name: one.comment for one in tables.LAGS.columns
    }


def values(place: str) -> list[float]:
    found: list[float] = DeltaTable(place).to_pyarrow_table()["value_last"].to_pylist()
    return sorted(found)
