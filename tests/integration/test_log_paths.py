"""Logs that name files outside their table, or other rows than files hold: nothing is read."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import write_deltalake

from collector.delivery.bronze_table import BronzeTable
from collector.errors import LakeSchemaError
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.delta_rs import TABLE, locate, open_table, query, refresh
from lakehouse.core.table_faults import missing_files
from lakehouse.engines.delta_tables import Store
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.errors import TableLogError, TableSchemaError
from tests.log_paths import HOSTILE, name_file
from tests.rig.s3.server import S3Server
from tests.rollups import HOUR, hours, local, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

FOLLOWED = [one for one in HOSTILE if "other" in one and not re.search(r"\\|^C:|%25|%5C|%3A", one)]
"""Those that Spark follows: it decodes once, refuses backslashes and finds no encoded scheme."""


@pytest.fixture(scope="module")
def rolled_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rolled")
    hours(1, 0, HOUR).commit(root)
    local(root)
    return root


@pytest.fixture
def lake(rolled_lake: Path, tmp_path: Path) -> Path:
    return shutil.copytree(rolled_lake, tmp_path / "lake")


def by_duckdb(root: Path, table: tables.Table) -> None:
    rows_of(root, (table,))


def by_delta_rs(root: Path, table: tables.Table) -> None:
    list(query(locate(str(root), None).open(table), f"SELECT * FROM {TABLE}"))  # noqa: S608 - a constant


def by_refresh(root: Path, table: tables.Table) -> None:
    """As maintenance reads a table that it has open; the commit before is the last honest one."""
    place = locate(str(root), None)
    newest = max((root / table.path / "_delta_log").glob("*.json"))
    text = newest.read_text()
    newest.unlink()
    delta = place.open(table)
    newest.write_text(text)
    refresh(delta)


def by_import(root: Path, table: tables.Table) -> None:
    BronzeTable(str(root), table, dict).load_for_reading()


READERS = [by_duckdb, by_delta_rs, by_refresh, by_import]


@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize("read", READERS)
def test_hostile_log_path_is_refused_by_reader(
    lake: Path, path: str, read: Callable[[Path, tables.Table], None]
) -> None:
    (lake / "bronze" / "other").mkdir()
    shutil.copy(
        next((lake / tables.RUNS.path).rglob("*.parquet")), lake / "bronze" / "other" / "x.parquet"
    )
    name_file(lake / tables.RUNS.path, path)
    with pytest.raises((TableLogError, LakeSchemaError)) as refused:
        read(lake, tables.RUNS)
    assert "not a file below the table" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("read", READERS)
def test_linked_data_is_refused_by_reader(
    lake: Path, tmp_path: Path, read: Callable[[Path, tables.Table], None]
) -> None:
    file = next((lake / tables.RUNS.path).rglob("*.parquet"))
    file.rename(tmp_path / "away.parquet")
    file.symlink_to(tmp_path / "away.parquet")
    with pytest.raises((TableLogError, LakeSchemaError), match="symbolic link"):
        read(lake, tables.RUNS)


@pytest.mark.parametrize("layer", ["bronze", "gold", ""])
def test_linked_lake_or_layer_is_read(lake: Path, tmp_path: Path, layer: str) -> None:
    before = rows_of(lake)
    place = lake / layer if layer else lake
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert rows_of(lake) == before
    by_delta_rs(lake, tables.RUNS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "LAKE"], ["explain", "LAKE", "t"], ["slo", "publish", "LAKE"],
        ["export", "LAKE", "topics", "--format", "csv"], ["verify", "LAKE"],
        ["forget", "LAKE", "billing"],
        ["views", "LAKE", "--dialect", "duckdb"], ["maintain", "LAKE"],
        ["rollup", "LAKE", "--engine", "local", "--tidy", "now"],
    ],
    ids=lambda one: one[0],
)  # fmt: skip
def test_command_refuses_hostile_log(lake: Path, arguments: list[str]) -> None:
    for table in (tables.RUNS, tables.SCRAPES, tables.SUBJECTS, tables.TOPICS, tables.SLI):
        name_file(lake / table.path, "../other/x.parquet")
    command = [str(lake) if one == "LAKE" else one for one in arguments]
    ran = CliRunner().invoke(main, command)
    assert ran.exit_code not in (0, None), ran.output
    assert "Traceback" not in ran.output
    assert "not a file below the table" in ran.output


def test_doctor_reports_hostile_log(lake: Path) -> None:
    name_file(lake / tables.TOPICS.path, "../other/x.parquet")
    ran = CliRunner().invoke(main, ["doctor", str(lake), "--json"])
    (found,) = [one for one in json.loads(ran.stdout)["findings"] if "../other" in str(one)]
    assert found["check"] == "unknown"


def test_rows_that_differ_from_log_are_an_error(lake: Path) -> None:
    runs, scrapes = (
        next((lake / one.path).rglob("*.parquet")) for one in (tables.RUNS, tables.SCRAPES)
    )
    shutil.copy(scrapes, runs)
    with pytest.raises(TableLogError) as refused:
        by_duckdb(lake, tables.RUNS)
    assert " in the log" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_lost_file_with_encoded_name_is_found(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"p": ["x#%20:%"], "x": [1]}), partition_by=["p"])
    next(tmp_path.rglob("*.parquet")).unlink()
    assert [one.rows for one in missing_files(open_table(str(tmp_path)))] == [1]


def test_log_without_row_counts_is_read(lake: Path) -> None:
    log = lake / tables.RUNS.path / "_delta_log"
    before = rows_of(lake, (tables.RUNS,))
    for file in log.glob("*.json"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            line.get("add", {}).pop("stats", None)
        file.write_text("\n".join(map(json.dumps, lines)))
    assert rows_of(lake, (tables.RUNS,)) == before


@pytest.mark.parametrize("name", ["-st*r 100% b{r}", "q'\"` $HOME ü"])
def test_odd_folder_reads_only_its_own_files(rolled_lake: Path, tmp_path: Path, name: str) -> None:
    lake = shutil.copytree(rolled_lake, tmp_path / name)
    sibling = shutil.copytree(
        rolled_lake, tmp_path / name.replace("*", "X").replace(" ", "%20"), dirs_exist_ok=True
    )
    if sibling != lake:
        for file in (sibling / "gold").rglob("*.parquet"):
            shutil.copyfile(next((sibling / tables.RUNS.path).rglob("*.parquet")), file)
    assert rows_of(lake) == rows_of(rolled_lake)
    hours(2, 2 * HOUR).commit(lake)
    hours(2, 2 * HOUR).commit(copy := shutil.copytree(rolled_lake, tmp_path / "plain"))
    for one in (lake, copy):
        assert local(one).hours == 1
    assert rows_of(lake) == rows_of(copy)
    by_delta_rs(lake, tables.RUNS)


def test_deletion_vectors_are_refused_before_they_are_opened(lake: Path) -> None:
    log = lake / tables.TOPICS.path / "_delta_log"
    features = ["deletionVectors"]
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features,
        "writerFeatures": features,
    }  # fmt: skip
    version = max(int(one.stem) for one in log.glob("*.json")) + 1
    (log / f"{version:020}.json").write_text(json.dumps({"protocol": protocol}))
    for read in (by_duckdb, by_delta_rs):
        with pytest.raises(TableSchemaError, match="deletionVectors"):
            read(lake, tables.TOPICS)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with S3Server.start(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.mark.parametrize("prefix", ["plain", "sp ace", "100%25", "st*r"])
def test_remote_files_are_cached_by_digest(server: S3Server, tmp_path: Path, prefix: str) -> None:
    root = server.url(f"lake/{prefix}")
    lake = lakes.at(root)
    store = Store(lake, server.options, tmp_path / "cache")
    table = tables.TOPICS
    write_deltalake(store.url(table), pa.table({"x": [1, 2]}), storage_options=server.options)
    (file,) = store.files(table, store.open(table), None)
    place = Path(file.place)
    assert place.parent == tmp_path / "cache"
    assert len(place.stem) == 64
    assert store.files(table, store.open(table), None) == [file]


@pytest.mark.parametrize("path", HOSTILE)
def test_remote_log_writes_inside_cache_only(server: S3Server, tmp_path: Path, path: str) -> None:
    name = f"lake/hostile-{HOSTILE.index(path)}"
    store = Store(lakes.at(server.url(name)), server.options, tmp_path / "cache")
    table = tables.TOPICS
    write_deltalake(store.url(table), pa.table({"x": [1]}), storage_options=server.options)
    name_file(server.bucket("lake") / name.removeprefix("lake/") / table.path, path)
    with pytest.raises(TableLogError, match="not a file below the table"):
        store.open(table)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_linked_data_is_refused_by_spark(spark: SparkSession, lake: Path, tmp_path: Path) -> None:
    from lakehouse.engines.spark_engine import SparkEngine  # noqa: PLC0415 - it imports Spark

    engine = SparkEngine(spark, lakes.at(str(lake)))
    assert engine.collect(engine.rows(tables.RUNS)).num_rows
    file = next((lake / tables.RUNS.path).rglob("*.parquet"))
    file.rename(tmp_path / "away.parquet")
    file.symlink_to(tmp_path / "away.parquet")
    with pytest.raises(TableLogError, match="symbolic link"):
        engine.rows(tables.RUNS)


@pytest.fixture(scope="module")
def is_read_by_spark(spark: SparkSession, rolled_lake: Path) -> bool:
    """Return whether Spark reads the lake while its logs name its own files."""
    from lakehouse.engines.spark_engine import SparkEngine  # noqa: PLC0415 - it imports Spark

    engine = SparkEngine(spark, lakes.at(str(rolled_lake)))
    return engine.collect(engine.rows(tables.TOPICS)).num_rows > 0


@pytest.mark.spark
@pytest.mark.parametrize("path", FOLLOWED)
def test_spark_refuses_hostile_log(
    spark: SparkSession, lake: Path, path: str, *, is_read_by_spark: bool
) -> None:
    from lakehouse.engines.spark_engine import SparkEngine  # noqa: PLC0415 - it imports Spark

    assert is_read_by_spark
    engine = SparkEngine(spark, lakes.at(str(lake)))
    name_file(lake / tables.TOPICS.path, path)
    with pytest.raises(TableLogError, match="not a file below the table"):
        engine.rows(tables.TOPICS)


def test_copied_id_of_checked_table_hides_nothing(lake: Path) -> None:
    engine = LocalEngine(lakes.at(str(lake)))
    name_file(lake / tables.TOPICS.path, "date=2026-11-16/x.parquet", rows=0)
    shutil.rmtree(lake / tables.SUBJECTS.path)
    shutil.copytree(lake / tables.TOPICS.path, lake / tables.SUBJECTS.path)
    newest = max((lake / tables.SUBJECTS.path / "_delta_log").glob("*.json"))
    newest.write_text(newest.read_text().replace("date=2026-11-16/x", "../other/x"))
    engine.open(tables.TOPICS)
    with pytest.raises(TableLogError, match="not a file below the table"):
        engine.open(tables.SUBJECTS)
