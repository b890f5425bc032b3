"""Gold is read by engines that are not Spark, and tells them what it holds."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.periods import Period, micros
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.ops import export
from lakehouse.slo import attainment
from lakehouse.slo.openslo import objective_files
from lakehouse.slo.report_calendar import Correction
from tests.everywhere import small_fleet
from tests.everywhere.gold_rows import rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(params=tables.GOLD, ids=lambda table: table.name)
def table(request: pytest.FixtureRequest) -> tables.Table:
    return request.param


@pytest.fixture
def delta(lake: Path, table: tables.Table) -> DeltaTable:
    return DeltaTable(str(lake / table.path))


def test_corrections_are_the_same_by_both_engines(spark: SparkSession, lake: Path):
    period = Period(*map(dt.datetime.fromisoformat, small_fleet.SPAN))
    start = micros(period.start)
    agreed = Correction(
        start, start + 3_600_000_000, "a test of ours", {"topic": ("topic-1",)},
        approved_by="Ada", ticket="OPS-1",
    )  # fmt: skip
    options, at = attainment.Options(corrections=(agreed,)), lakes.at(str(lake))
    by_spark, local = (
        attainment.read(engine, objective_files.load(), period, micros(period.end), options=options)
        for engine in (SparkEngine(spark, at), LocalEngine(at))
    )
    assert by_spark == local
    corrected = [one for one in local if one.corrections == (agreed,)]
    assert {one.subject.topic for one in corrected} == {"topic-1"}
    assert all(one.agreed is not None for one in corrected)


def test_the_delta_log_tells_what_tables_and_columns_hold(table: tables.Table, delta: DeltaTable):
    assert delta.metadata().description == table.comment
    found = {field.name: field.metadata.get("comment") for field in delta.schema().fields}
    assert found == {column.name: column.comment for column in table.columns}
    assert delta.metadata().partition_columns == list(table.partition_by)


def test_no_table_asks_for_more_than_plain_parquet(delta: DeltaTable):
    protocol = delta.protocol()
    assert protocol.min_reader_version == 1, protocol


@pytest.mark.parametrize(
    "name", ["partitions", "topics_windows", "sli", "distributions", "coverage"]
)
def test_duckdb_reads_the_rows_of_spark(
    name: str, lake: Path, wanted: dict[str, list[dict[str, Any]]]
):
    files = DeltaTable(str(lake / "gold" / name)).file_uris()
    read = duckdb.read_parquet(files, hive_partitioning=True, union_by_name=True)
    start = next(one.start for one in tables.GOLD if one.name == name)
    rows = read.project(f"date, cluster, epoch_us({start})").fetchall()
    expected = [
        (row["date"], row["cluster"], round(row[start].timestamp() * 1e6)) for row in wanted[name]
    ]
    assert sorted(rows) == sorted(expected)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_export_holds_every_row_of_spark(
    form: str, table: tables.Table, lake: Path, tmp_path: Path
):
    told = rows(str(lake / table.path))
    file = tmp_path / f"{table.name}.{form}"
    command = ["export", str(lake), table.name, "--format", form, "--out", str(file)]
    ran = CliRunner().invoke(main, command)
    if not told:  # nobody has stated anything of this lake
        assert table in (tables.SLA, tables.OWNERS)
        assert ran.exit_code == 1
        assert "no such rows. The export wrote no file" in ran.output
        assert not file.exists()
        return
    assert ran.exit_code == 0, ran.output
    read = duckdb.read_csv if form == "csv" else duckdb.read_parquet
    found = read(str(file))
    assert tuple(found.columns) == table.column_names
    assert len(found.fetchall()) == len(told)


@pytest.mark.parametrize("name", sorted(export.OPENMETRICS))
def test_a_backfill_holds_every_figure_that_is_known(
    name: str, lake: Path, wanted: dict[str, list[dict[str, Any]]]
):
    command = ["export", str(lake), name, "--format", "openmetrics"]
    ran = CliRunner().invoke(main, command)
    assert ran.exit_code == 0, ran.output
    families = text_string_to_metric_families(ran.stdout)
    (table,) = (one for one in tables.GOLD if one.name == name)
    figures = [one.name for one in table.measures]
    known = sum(row[figure] is not None for row in wanted[name] for figure in figures)
    assert sum(len(family.samples) for family in families) == known


def test_the_doctor_finds_nothing_wrong_with_gold_of_spark(lake: Path):
    ran = CliRunner().invoke(main, ["doctor", str(lake), "--days", "400", "--json"])
    told = json.loads(ran.stdout)
    assert {one["table"] for one in told["tables"]} >= {table.path for table in tables.GOLD}
    of_gold = {(one["check"], one["where"]) for one in told["findings"] if "gold/" in one["where"]}
    assert of_gold == {("rejected", "gold/rejected")}
