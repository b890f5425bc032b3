"""A lake in a real Unity Catalog server: bronze registered, gold below a storage root, by names.

Not collected by itself, because of the jars it needs: ``make test-databricks``.
"""

from __future__ import annotations

import datetime as dt
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bench import rollup_fleet
from bench.rollup_world import Fleet
from lakehouse import tables
from lakehouse.ops.views import render
from tests.everywhere.commands import Here, Jmxlake
from tests.everywhere.gold_rows import differing, gold_rows
from tests.everywhere.unity_server import UnityServer
from tests.rig.connect_server import WORKER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.spark

BRONZE, GOLD = "main.bronze", "main.gold"
OF_THE_FLEET = (tables.RUNS, tables.MEMBERS, tables.SCRAPES)
SCHEMAS = [
    f"{gold}{shelf}"
    for gold in ("gold", "others", "hour_gold")
    for shelf in ("", "_windows", "_state")
]
READER = "reader@example.com"
SHIM = Path(__file__).parent / "fake_serverless"
HOUR, TWO = Fleet(), Fleet(clusters=1, brokers=2, topics=2, partitions=2)
"""100 brokers in five clusters, as in ``make bench-rollup``; and two."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityServer]:
    with UnityServer(tmp_path_factory.mktemp("unity")) as running:
        running.create("catalogs", name="main")
        for name in ("bronze", "views", "hour_bronze", *SCHEMAS):
            running.create("schemas", name=name, catalog_name="main")
        running.user(READER)
        yield running


@pytest.fixture(scope="module")
def command(
    server: UnityServer, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Jmxlake]:
    """The command whose Spark shows Unity Catalog a token."""

    def as_owner_of(token: str) -> Jmxlake:
        folder = tmp_path_factory.mktemp("client")
        return Jmxlake(wheel, folder, server.spark(folder, token))

    return as_owner_of


@pytest.fixture(scope="module")
def admin(server: UnityServer, command: Callable[..., Jmxlake]) -> Jmxlake:
    return command(server.admin)


@pytest.fixture(scope="module")
def root(lake: Path, admin: Jmxlake) -> Path:
    """A lake whose bronze is registered; the hour's is by ``jmxlake register``."""
    root = admin.folder / "lake"
    shutil.copytree(lake / "bronze", root / "bronze")
    admin.sql(
        *(
            f"CREATE TABLE {BRONZE}.{one.name} USING delta LOCATION '{root / one.path}'"
            for one in OF_THE_FLEET
        )
    )
    return root


@pytest.fixture(scope="module")
def gold(admin: Jmxlake, root: Path) -> Path:
    """Where gold is kept that was rolled up by names alone."""
    place = root.parent / "external" / "gold"
    where = (BRONZE, "--gold", GOLD, "--gold-root", str(place))
    admin("rollup", *where)
    assert "no new data" in admin("rollup", *where)
    return place


def test_bronze_is_registered_as_external_tables_and_read_by_three_part_names(
    server: UnityServer, admin: Jmxlake, root: Path
):
    found = server.asked("GET", "2.1/unity-catalog/tables?catalog_name=main&schema_name=bronze")
    told = {one["name"]: (one["table_type"], one["storage_location"]) for one in found["tables"]}
    assert told == {one.name: ("EXTERNAL", (root / one.path).as_uri()) for one in OF_THE_FLEET}
    named, by_path = admin.sql(
        "SELECT count(*) AS rows, sum(value) AS sum FROM `main`.`bronze`.`runs`",
        f"SELECT count(*) AS rows, sum(value) AS sum FROM delta.`{root}/bronze/runs`",  # noqa: S608
    )
    assert named == by_path
    assert named[0]["rows"] > 0


def test_gold_lies_below_the_storage_root_and_equals_that_of_a_path(
    server: UnityServer, gold: Path, wanted: dict[str, list[dict[str, Any]]]
):
    for shelf in ("", "_windows", "_state"):
        asked = f"2.1/unity-catalog/tables?catalog_name=main&schema_name=gold{shelf}"
        found = server.asked("GET", asked)["tables"]
        told = {one["name"]: (one["table_type"], one["storage_location"]) for one in found}
        assert {(kind, place) for kind, place in told.values()} == {
            ("EXTERNAL", (gold / name).as_uri()) for name in told
        }
        assert {one.name for one in tables.GOLD if f"_{one.shelf}".rstrip("_") == shelf} <= {*told}
    assert differing(gold_rows(gold), wanted) == {}


def test_statements_and_report_json_are_those_of_the_path(
    admin: Jmxlake, gold: Path, here: Here, lake: Path
):
    assert gold.is_dir()
    names = (BRONZE, "--gold", GOLD)
    assert admin.statements(*names) == here.statements(str(lake)) != []
    assert admin.facts(*names) == here.facts(str(lake))


def test_gold_is_tidied_and_verified_through_its_names(admin: Jmxlake, gold: Path):
    assert gold.is_dir()
    admin("rollup", BRONZE, "--gold", GOLD, "--tidy", "now")
    assert ", 0 differ" in admin("verify", BRONZE, "--gold", GOLD)


def test_views_are_made_in_the_catalog_and_read(admin: Jmxlake, gold: Path):
    assert gold.is_dir()
    sql = admin("views", "--dialect", "spark", "--schema", "main.views", GOLD)
    # The connector makes views and cannot replace them: "Replacing a view is not supported yet".
    sql = sql.replace("CREATE OR REPLACE VIEW", "CREATE VIEW")
    admin.sql(*(one for one in sql.split(";\n") if one.strip()))
    names = [view.name for view in render.views()]
    rows = admin.sql(*(f"TABLE main.views.{name}" for name in names))
    empty = {name for name, found in zip(names, rows, strict=True) if not found}
    # It has no reading of traffic; and sources are those that were read in the last seven days.
    assert empty == {"traffic", "sources_tried"}


def test_a_token_that_has_expired_is_one_line(
    server: UnityServer, command: Callable[..., Jmxlake], gold: Path
):
    assert gold.is_dir()
    said = command(server.token("admin", -60)).refusal("rollup", BRONZE, "--gold", GOLD)
    assert "new token" in said


def test_a_catalog_without_rights_is_one_line_that_says_what_to_grant(
    server: UnityServer, command: Callable[..., Jmxlake], gold: Path
):
    assert gold.is_dir()
    said = command(server.token(READER)).refusal("rollup", BRONZE, "--gold", GOLD)
    assert "USE CATALOG, USE SCHEMA" in said


def test_a_missing_schema_is_one_line_that_says_what_to_create(admin: Jmxlake, root: Path):
    said = admin.refusal("rollup", BRONZE, "--gold", "main.nowhere", "--gold-root", f"{root}/none")
    assert "create the schema" in said


def test_a_schema_with_other_tables_is_one_line_and_they_stay(admin: Jmxlake, root: Path):
    other = "CREATE TABLE main.others.topics (note STRING) USING delta LOCATION '{}'"
    admin.sql(other.format(root.parent / "other"), "INSERT INTO main.others.topics VALUES ('mine')")
    place = ("--gold", "main.others", "--gold-root", f"{root}/others")
    assert "not a table of jmxlake" in admin.refusal("rollup", BRONZE, *place)
    assert admin.sql("SELECT * FROM main.others.topics") == [[{"note": "mine"}]]


def test_an_hour_of_100_brokers_through_the_catalog_beside_the_same_on_a_path(
    server: UnityServer, wheel: Path, tmp_path: Path,
    record_testsuite_property: Callable[[str, object], None],
):  # fmt: skip
    """Both over one Connect server, whose workers have 1 GB: what differs is the catalog.

    Who is first finds a colder server, so each is first once.
    """
    lake, took = tmp_path / "lake", {True: 0.0, False: 0.0}
    names = ("main.hour_bronze", "--gold", "main.hour_gold", "--gold-root", f"{tmp_path}/gold")
    with server.connect(tmp_path / "connect") as spark:
        client = Jmxlake(wheel, tmp_path, {"SPARK_REMOTE": spark.remote}, SHIM)
        # Gold's tables are made by the hour before, of two brokers: once for a lake, not each hour.
        rollup_fleet.write(lake, TWO, rollup_fleet.START, 1, show=False)
        client("register", str(lake), "--bronze", "main.hour_bronze")
        for where in (names, (str(lake),)):
            client("rollup", *where)
        for hour, order in enumerate(((True, False), (False, True)), start=1):
            start = rollup_fleet.START + dt.timedelta(hours=hour)
            rollup_fleet.write(lake, HOUR, start, 1, show=False)
            for named in order:
                where = names if named else (str(lake),)
                took[named] += seconds(lambda where=where: client("rollup", *where))
        assert differing(gold_rows(f"{tmp_path}/gold"), gold_rows(lake / "gold")) == {}
    record_testsuite_property("hour_catalog_vs_path", round(took[True] / took[False], 3))
    record_testsuite_property("hour_catalog_seconds", round(took[True] / 2, 1))
    record_testsuite_property("hour_path_seconds", round(took[False] / 2, 1))
    record_testsuite_property("hour_worker_mb", round(spark.workers.peak / 1e6, 1))
    assert 0 < spark.workers.peak < WORKER_BYTES


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began
