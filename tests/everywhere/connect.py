"""A lake of names over Spark Connect: a server with a catalog, and a client without a JVM.

The client refuses what Databricks serverless refuses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakehouse import tables
from lakehouse.core.lake import Lake
from tests import notebooks
from tests.everywhere import small_fleet
from tests.everywhere.commands import Here, Jmxlake
from tests.everywhere.gold_rows import differing, gold_rows
from tests.rig.connect_server import WORKER_BYTES, ConnectServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

BRONZE, GOLD = "spark_catalog.bronze", "spark_catalog.weekly_gold"
LAKE = (BRONZE, "--gold", GOLD)
NAMED = Lake(BRONZE, GOLD, BRONZE)
SHIM = Path(__file__).parent / "fake_serverless"
NOTEBOOKS = sorted((Path(__file__).parents[2] / "dashboards").glob("*.py"))
TELL_WHEN = {"tour", "weekly_sla"}
"""Notebooks that tell when something was made."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    with ConnectServer(tmp_path_factory.mktemp("connect")) as running:
        yield running


@pytest.fixture(scope="module")
def remote(server: ConnectServer, wheel: Path) -> Jmxlake:
    """The command where SPARK_REMOTE names the server and no Java is found."""
    nowhere = {"JAVA_HOME": str(server.folder), "PATH": str(server.folder)}
    settings = {"SPARK_REMOTE": server.remote, **nowhere}
    return Jmxlake(wheel, server.folder, settings, SHIM)


@pytest.fixture(scope="module")
def rolled_up(server: ConnectServer, remote: Jmxlake) -> Jmxlake:
    """Bronze registered as external tables, rolled up; late data is in `make test-connect`."""
    root = server.folder / "lake"
    for batch in small_fleet.batches():
        batch.commit(root)
    remote.sql(
        "CREATE SCHEMA `bronze`",
        *(f"CREATE SCHEMA `weekly_gold{one}`" for one in ("", "_windows", "_state")),
        *(
            f"CREATE TABLE `bronze`.`{one.name}` USING delta LOCATION '{root / one.path}'"
            for one in (tables.RUNS, tables.MEMBERS, tables.SCRAPES)
        ),
    )
    remote("rollup", *LAKE)
    assert "no new data" in remote("rollup", *LAKE)
    return remote


@pytest.fixture(scope="module")
def gold(
    server: ConnectServer, rolled_up: Jmxlake, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Links to the tables where the catalog keeps them, each in the folder of its schema."""
    assert rolled_up is not None
    links = tmp_path_factory.mktemp("gold")
    for one in tables.GOLD:
        schema = str(NAMED.schema_of(one)).partition(".")[2]
        (links / one.name).symlink_to(server.warehouse / f"{schema}.db" / one.name)
    return links


def test_f01_the_client_refuses_what_serverless_refuses(remote: Jmxlake):
    code = (
        "from lakehouse.core.spark_session import session, setting; s = session()\n"
        "print(setting(s, 'spark.sql.adaptive.enabled'), setting(s, 'spark.sql.session.timeZone'))"
    )
    assert remote.python(code).split() == ["None", "UTC"]


def test_f15_gold_is_that_of_local_spark_row_for_row(
    gold: Path, wanted: dict[str, list[dict[str, Any]]]
):
    assert differing(gold_rows(gold), wanted) == {}


def test_statements_and_facts_are_those_of_local_spark(rolled_up: Jmxlake, here: Here, lake: Path):
    assert rolled_up.statements(*LAKE) == here.statements(str(lake)) != []
    told, wanted = rolled_up.facts(*LAKE), here.facts(str(lake))
    assert told == wanted


def test_notebooks_show_what_they_show_on_local_spark(
    rolled_up: Jmxlake, spark: SparkSession, lake: Path
):
    asked = {"week": small_fleet.ISO_WEEK, "client": "/".join(small_fleet.HOSTILE)}
    rolled_up("slo", "publish", *LAKE, "--week", small_fleet.ISO_WEEK)  # for weekly_sla
    catalog, bronze = BRONZE.split(".")
    named = {"catalog": catalog, "bronze": bronze, "schema": GOLD.split(".")[1]}
    shown = rolled_up.notebooks({**asked, **named}, *NOTEBOOKS)
    local = notebooks.registered(spark, lake, "beside_bronze", "beside_gold")
    for path in NOTEBOOKS:
        page, rows = shown[path.stem]
        assert "No data for this cell" not in page
        assert rows
        if path.stem not in TELL_WHEN:
            told = notebooks.cells(str(path), spark, {**asked, **local})
            assert [page, rows] == json.loads(json.dumps(told, default=str))


def test_the_catalog_tells_what_tables_and_columns_hold(rolled_up: Jmxlake):
    names = [NAMED.name(one) for one in tables.GOLD]
    described = rolled_up.sql(*(f"DESCRIBE TABLE EXTENDED {name}" for name in names))
    for table, lines in zip(tables.GOLD, described, strict=True):
        columns = {line["col_name"]: line for line in reversed(lines)}
        assert columns["Comment"]["data_type"] == table.comment
        found = {name: columns[name]["comment"] for name in table.column_names}
        assert found == {column.name: column.comment for column in table.columns}


def test_what_is_not_in_the_catalog_is_one_line(rolled_up: Jmxlake):
    said = rolled_up.refusal("rollup", "spark_catalog.nowhere", "--gold", GOLD)
    assert said.startswith("jmxlake: `spark_catalog`.`nowhere`.`runs`: no such table")


def test_a_worker_that_passes_1_gb_is_ended(server: ConnectServer, remote: Jmxlake):
    code = """
import time
from lakehouse.core.spark_session import session
def greedy(batches):
    held = b"x" * 1_500_000_000
    time.sleep(60)
    yield from batches if held else ()
try:
    session().range(1).mapInArrow(greedy, "id long").collect()
except Exception as error:
    print("crashed" in str(error) or "Python worker" in str(error))
"""
    assert remote.python(code).split() == ["True"]
    assert server.workers.peak > WORKER_BYTES
