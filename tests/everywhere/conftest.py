from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from demo.jars import delta_jars
from lakehouse.core import lake as lakes, periods
from lakehouse.core.spark_session import JARS_SETTING
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.engines.spark_engine import SparkEngine
from lakehouse.notebooks.choices import Choices
from lakehouse.report.facts.build import facts
from lakehouse.slo.openslo import objective_files
from tests.everywhere import small_fleet
from tests.everywhere.commands import Here, Jmxlake, unpacked_wheel
from tests.everywhere.gold_rows import gold_rows
from tests.lake_builder import CLUSTER
from tests.notebooks import FakeWidgets, registered

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession

    from lakehouse.report.facts.gold import Gold


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def laptop(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Jmxlake:
    """The command with the Spark that it starts itself."""
    jars = {JARS_SETTING: str(delta_jars()[0].parent)}
    return Jmxlake(wheel, tmp_path_factory.mktemp("laptop"), jars)


@pytest.fixture(scope="session")
def here(spark: SparkSession) -> Here:
    """The command in this process."""
    assert spark is not None
    return Here()


@pytest.fixture(scope="session")
def lake(here: Here, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that DuckDB alone has rolled up: what any Spark's gold must equal."""
    root = tmp_path_factory.mktemp("local-lake")
    for batch in small_fleet.batches():
        batch.commit(root)
    here("rollup", str(root), "--engine", "local")
    return root


@pytest.fixture(scope="session")
def wanted(lake: Path) -> dict[str, list[dict[str, Any]]]:
    """Gold of that lake."""
    found = gold_rows(lake / "gold")
    empty = {name for name, rows in found.items() if not rows}
    assert not empty, "a table without rows proves nothing"
    return found


@pytest.fixture(scope="session")
def stated(here: Here, lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of that lake with its week stated."""
    root = tmp_path_factory.mktemp("published") / "lake"
    shutil.copytree(lake, root)
    here("slo", "publish", str(root), "--week", small_fleet.ISO_WEEK)
    return root


@pytest.fixture(scope="session")
def published(spark: SparkSession, stated: Path) -> dict[str, str]:
    """The tables of that copy get names; what widgets say of it."""
    return registered(spark, stated, "published_bronze", "published_gold")


@pytest.fixture(scope="session", params=["local", pytest.param("spark", marks=pytest.mark.nightly)])
def week(request: pytest.FixtureRequest, stated: Path) -> Gold:
    """The fleet's week as a notebook opens it, with each engine."""
    if request.param == "local":
        choices = Choices.read(FakeWidgets({"week": small_fleet.ISO_WEEK}), {})
        return choices.gold(LocalEngine(lakes.at(str(stated))))
    published = request.getfixturevalue("published")
    choices = Choices.read(FakeWidgets({**published, "week": small_fleet.ISO_WEEK}), {})
    return choices.gold(SparkEngine(request.getfixturevalue("spark"), choices.lake))


@pytest.fixture(scope="session")
def report(stated: Path) -> dict[str, Any]:
    """What a report tells of that week, by the other engine."""
    wanted = (objective_files.load(objective_files.SHIPPED), periods.week(small_fleet.ISO_WEEK))
    return facts(LocalEngine(lakes.at(str(stated))), *wanted, cluster=CLUSTER)
