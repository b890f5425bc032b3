"""Gold is read by engines that are not Spark, and tells them what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from deltalake import DeltaTable

from lakehouse import tables

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


@pytest.fixture(params=tables.GOLD, ids=lambda table: table.name)
def table(request: pytest.FixtureRequest) -> tables.Table:
    return request.param


@pytest.fixture
def delta(lake: Path, table: tables.Table) -> DeltaTable:
    return DeltaTable(str(lake / table.path))


def test_the_delta_log_tells_what_tables_and_columns_hold(table: tables.Table, delta: DeltaTable):
    assert delta.metadata().description == table.comment
    found = {field.name: field.metadata.get("comment") for field in delta.schema().fields}
    assert found == {column.name: column.comment for column in table.columns}
    assert delta.metadata().partition_columns == list(table.partition_by)


def test_no_table_asks_for_more_than_plain_parquet(delta: DeltaTable):
    protocol = delta.protocol()
    assert protocol.min_reader_version == 1, protocol


@pytest.mark.parametrize("name", ["partitions", "topics", "sli", "distributions", "coverage"])
def test_duckdb_reads_the_rows_of_spark(
    name: str, lake: Path, wanted: dict[str, list[dict[str, Any]]]
):
    files = DeltaTable(str(lake / "gold" / name)).file_uris()
    read = duckdb.read_parquet(files, hive_partitioning=True, union_by_name=True)
    rows = read.project('grain, cluster, epoch_us("window")').fetchall()
    expected = [
        (row["grain"], row["cluster"], round(row["window"].timestamp() * 1e6))
        for row in wanted[name]
    ]
    assert sorted(rows) == sorted(expected)
