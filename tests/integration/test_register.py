"""Bronze under names: external tables over what the agents write, which stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from collector.delivery.watched_groups_table import WatchedGroupsTable
from collector.sources.admin.watched_groups import Owners, WatchedGroups
from collector.spool.spool import Spool
from lakehouse import tables
from lakehouse.cli.main import main
from lakehouse.cli.views import register_tables
from lakehouse.core import lake
from lakehouse.engines.spark_relations import table_of
from lakehouse.errors import LakeReplacedError, TableNotFoundError
from tests.lake_builder import Batch, made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMES = "spark_catalog.registered"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("an agent's lake")
    batch = Batch()
    batch.run("kafka.partition.under_min_isr", 0, 60, 1.0, topic="orders", partition=0)
    batch.commit(folder)
    for one in (*tables.BRONZE, *tables.CONTROL):
        made(folder, one)
    return folder


@pytest.fixture
def schema(spark: SparkSession) -> Iterator[None]:
    spark.sql(f"CREATE SCHEMA {NAMES}")
    yield
    spark.sql(f"DROP SCHEMA {NAMES} CASCADE")


@pytest.mark.usefixtures("schema")
def test_registered_names_show_new_rows_without_a_write(spark: SparkSession, root: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in root.rglob("*")}
    # The second call changes nothing.
    told = [register_tables(spark, str(root), NAMES) for _ in range(2)]
    assert told[0] == told[1]
    every = (*tables.BRONZE, *tables.CONTROL)
    assert told[0] == [f"`spark_catalog`.`registered`.`{one.name}`" for one in every]
    place = lake.at(NAMES, gold="spark_catalog.gold")
    assert table_of(spark, place, tables.RUNS).count() == 1
    later = Batch(number=2)
    later.run("kafka.partition.under_min_isr", 60, 120, 0.0, topic="orders", partition=0)
    added = {file for file in root.rglob("*") if file not in before}
    assert added == set()
    assert {file: file.stat().st_mtime_ns for file in before} == before
    later.commit(root)
    assert table_of(spark, place, tables.RUNS).count() == 2


@pytest.mark.usefixtures("schema")
def test_owner_changes_watched_groups_with_sql_and_agents_read_them(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    ran = CliRunner().invoke(main, ["watched-groups", str(root)])
    assert (ran.exit_code, ran.stdout) == (0, "")
    register_tables(spark, str(root), NAMES)
    name = lake.at(NAMES, gold="spark_catalog.gold").name(tables.WATCHED_GROUPS)
    for statement in (
        "INSERT INTO NAME VALUES ('a*', array('g', '!h'), 'me', current_timestamp())",
        "INSERT INTO NAME VALUES ('gone', array('g'), 'me', current_timestamp())",
        "DELETE FROM NAME WHERE topic = 'gone'",
        "UPDATE NAME SET groups = array('i') WHERE topic = 'a*'",
    ):
        spark.sql(statement.replace("NAME", name))
    watched = WatchedGroups()
    with Spool(tmp_path / "spool.db", 1 << 20) as spool:
        WatchedGroupsTable(str(root), dict, watched, spool).read()
    assert watched.owners == Owners({"a*": ("i",)})


@pytest.mark.usefixtures("schema")
def test_name_of_other_lake_is_refused(spark: SparkSession, root: Path, tmp_path: Path) -> None:
    register_tables(spark, str(root), NAMES)
    for one in tables.BRONZE:
        made(tmp_path, one)
    with pytest.raises(LakeReplacedError, match=r"is registered at .+\. If the lake has moved"):
        register_tables(spark, str(tmp_path), NAMES)


@pytest.mark.usefixtures("schema")
def test_tables_that_are_not_there_are_one_line(
    spark: SparkSession, root: Path, tmp_path: Path
) -> None:
    with pytest.raises(TableNotFoundError, match="Check that an agent has delivered"):
        register_tables(spark, str(tmp_path), NAMES)
    ran = CliRunner().invoke(main, ["register", str(tmp_path), "--bronze", NAMES])
    assert ran.exit_code == 1
    assert ran.stderr.splitlines()[-1].startswith(f"jmxlake: {tmp_path}: no table bronze/runs")
    ran = CliRunner().invoke(main, ["register", str(root), "--bronze", NAMES])
    assert ran.stdout.splitlines()[0] == "`spark_catalog`.`registered`.`runs`"
