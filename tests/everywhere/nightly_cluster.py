"""A standalone cluster, a master and two workers: what is split over executors sums up to the bit.

Not collected by itself, because it takes minutes: ``make test-cluster``.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from bench import rollup_fleet
from bench.rollup_world import Fleet
from bench.spark_processes import StandaloneCluster
from tests.everywhere.commands import Jmxlake
from tests.everywhere.gold_rows import differing, gold_rows

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark

FLEET = Fleet(clusters=2, brokers=10, topics=20, partitions=50)
WEEK = ("--week", f"{rollup_fleet.START:%G-W%V}", "--json")


@pytest.fixture(scope="module")
def bronze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    written = rollup_fleet.write(folder, FLEET, rollup_fleet.START, 24, show=False)
    assert written.runs > 1_000_000
    return folder / "bronze"


@pytest.fixture(scope="module")
def local(bronze: Path, laptop: Jmxlake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same day, rolled up by the laptop."""
    folder = tmp_path_factory.mktemp("local")
    shutil.copytree(bronze, folder / "bronze")
    laptop("rollup", str(folder), "--engine", "spark")
    return folder


def test_a_cluster_gives_the_gold_of_local_spark(
    wheel: Path, lake: Path, wanted: dict[str, list[dict[str, Any]]], tmp_path: Path
):
    shutil.copytree(lake / "bronze", tmp_path / "lake" / "bronze")
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        driver = Jmxlake(wheel, tmp_path, {"SPARK_CONF_DIR": str(cluster.conf)})
        driver("rollup", str(tmp_path / "lake"))
        assert cluster.worked() == [1, 1]
    assert differing(gold_rows(tmp_path / "lake" / "gold"), wanted) == {}


def test_a_day_of_a_fleet_gives_the_laptops_gold(
    bronze: Path, local: Path, laptop: Jmxlake, tmp_path: Path
):
    lake = tmp_path / "lake"
    shutil.copytree(bronze, lake / "bronze")
    with StandaloneCluster(tmp_path / "cluster", executor_memory="2g") as cluster:
        driver = Jmxlake(laptop.wheel, tmp_path, {"SPARK_CONF_DIR": str(cluster.conf)})
        driver("rollup", str(lake))
        assert cluster.worked() == [1, 1]
        stated = driver("sla", str(lake), *WEEK)
        assert cluster.worked() == [1, 1], "gold on a path is read without Spark"
    assert differing(gold_rows(lake / "gold"), gold_rows(local / "gold")) == {}
    assert stated == laptop("sla", str(local), *WEEK)
