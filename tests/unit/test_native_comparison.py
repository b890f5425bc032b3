"""bench/native.py fails unless every row of native Spark SQL is the kernel's, to the bit."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import duckdb
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable, write_deltalake

from bench import native, rollup_fleet
from bench.rollup_process import FailedError
from bench.rollup_world import Fleet
from lakehouse import tables
from lakehouse.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

FLEET = Fleet(clusters=1, brokers=2, topics=2, partitions=10, hit=0.3, clients=10)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    rollup_fleet.write(folder, FLEET, rollup_fleet.START, 1, show=False)
    ran = CliRunner().invoke(main, ["rollup", str(folder), "--engine", "local"])
    assert ran.exit_code == 0, ran.output
    return folder


def written(lake: Path, out: Path, change: str = "*") -> Path:
    """Gold's own rows as native SQL writes them, with a change of hours of topics."""
    for table in native.COMPARED:
        rows = DeltaTable(str(lake / table.path)).to_pyarrow_table()
        (out / table.name).mkdir(parents=True)
        chosen = change if table is tables.TOPICS else "*"
        query = f"SELECT {chosen}, epoch_us({table.start}) AS w FROM rows"  # noqa: S608 - of this test
        found = duckdb.connect()
        found.register("rows", rows)
        found.sql(query).write_parquet(str(out / table.name / "part.parquet"))
    return out


def test_equal_rows_do_not_differ(lake: Path, tmp_path: Path) -> None:
    found = native.compare(lake, written(lake, tmp_path))
    assert {one.differ for one in found.values()} == {0}
    assert min(one.rows for one in found.values()) > 0


@pytest.mark.parametrize(
    "change",
    [
        "* REPLACE "
        "(series_seen_us + (metric = 'kafka.partition.unavailable')::INT AS series_seen_us)",
        "* REPLACE (value_seconds * (1 + 1e-15) AS value_seconds)",
        "* REPLACE (CASE WHEN value_max > 0 THEN value_max END AS value_max)",
    ],
)
def test_a_changed_figure_differs(lake: Path, tmp_path: Path, change: str) -> None:
    found = native.compare(lake, written(lake, tmp_path, change))
    assert found["topics"].differ > 0
    assert found["topics_windows"].differ == 0


def test_rejected_rows_are_an_error(lake: Path, tmp_path: Path) -> None:
    twice = tmp_path / "lake"
    shutil.copytree(lake / "bronze", twice / "bronze")
    runs = DeltaTable(str(twice / tables.RUNS.path))
    write_deltalake(runs, runs.to_pyarrow_table().slice(0, 1), mode="append")
    assert CliRunner().invoke(main, ["rollup", str(twice), "--engine", "local"]).exit_code == 0
    with pytest.raises(FailedError, match="gold/rejected"):
        native.compare(twice, tmp_path)
