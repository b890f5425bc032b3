"""A standalone cluster, a master and two workers: what is split over executors sums up to the bit.

Not collected by itself, because it takes minutes: ``make test-cluster``.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from bench import rollup_fleet
from bench.rollup_world import Fleet
from lakehouse import tables
from tests.everywhere import small_fleet
from tests.everywhere.commands import Jmxlake
from tests.everywhere.gold_rows import differing, gold_rows, rows
from tests.rig.spark_processes import StandaloneCluster
from tests.waiting import wait_for

pytestmark = pytest.mark.spark

if TYPE_CHECKING:
    from collections.abc import Callable

FLEET = Fleet(clusters=2, brokers=10, topics=20, partitions=50, clients=200)
WEEK = ("--week", f"{rollup_fleet.START:%G-W%V}", "--json")
WHEN = {"stated_at"}
"""Columns of gold/sla that tell when a statement was made."""


def every_row(gold: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table of gold, those of statements without the instant."""
    stated = [
        {name: value for name, value in row.items() if name not in WHEN}
        for row in rows(f"{gold}/{tables.SLA.name}")
    ]
    return {**gold_rows(gold), tables.SLA.name: sorted(stated, key=repr)}


@pytest.fixture(scope="module")
def bronze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of a fleet; and four hours that have something of everything."""
    folder = tmp_path_factory.mktemp("fleet")
    written = rollup_fleet.write(folder, FLEET, rollup_fleet.START, 24, show=False)
    assert written.runs > 1_000_000
    for batch in small_fleet.batches():
        batch.commit(folder)
    return folder / "bronze"


@pytest.fixture(scope="module")
def local(bronze: Path, laptop: Jmxlake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same day, rolled up and stated by DuckDB alone."""
    folder = tmp_path_factory.mktemp("local")
    shutil.copytree(bronze, folder / "bronze")
    laptop("rollup", str(folder), "--engine", "local")
    laptop("slo", "publish", str(folder), *WEEK)
    empty = {name for name, found in every_row(folder / "gold").items() if not found}
    assert not empty, "a table without rows proves nothing"
    return folder


def computes(executor: psutil.Process) -> bool:
    """Whether an executor is computing a part: it has a folder to spill to."""
    with suppress(psutil.Error):
        folder = Path(executor.environ()["SPARK_EXECUTOR_DIRS"])
        return any(folder.glob("blockmgr-*/jmxlake-*"))
    return False


def end_one(cluster: StandaloneCluster) -> int:
    """End the first executor that computes a part; return its process id."""
    found: list[psutil.Process] = []

    def is_found() -> bool:
        found.extend(filter(computes, cluster.executors()))
        return bool(found)

    wait_for(is_found, 300, every=0.02)
    found[0].kill()
    return found[0].pid


def meanwhile(ended: Callable[[], int], run: Callable[[], str]) -> int:
    """Run a command in this thread and something else in another; return what that found."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(ended)
        run()
        return other.result()


def test_a_cluster_gives_the_gold_of_local_spark(
    wheel: Path, lake: Path, wanted: dict[str, list[dict[str, Any]]], tmp_path: Path
):
    shutil.copytree(lake / "bronze", tmp_path / "lake" / "bronze")
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        driver = Jmxlake(wheel, tmp_path, cluster.environment)
        driver("rollup", str(tmp_path / "lake"))
        assert cluster.worked() == [1, 1]
    assert differing(gold_rows(tmp_path / "lake" / "gold"), wanted) == {}


def test_a_day_of_a_fleet_gives_the_laptops_gold_although_an_executor_is_ended(
    bronze: Path, local: Path, laptop: Jmxlake, tmp_path: Path
):
    lake = tmp_path / "lake"
    shutil.copytree(bronze, lake / "bronze")
    with StandaloneCluster(tmp_path / "cluster", executor_memory="2g") as cluster:
        driver = Jmxlake(laptop.wheel, tmp_path, cluster.environment)
        gone = meanwhile(lambda: end_one(cluster), lambda: driver("rollup", str(lake)))
        assert not psutil.pid_exists(gone)
        worked = cluster.worked()
        assert sorted(worked) == [1, 2], "another executor took its place"
        driver("slo", "publish", str(lake), *WEEK)
        assert cluster.worked() == worked, "gold on a path is read without Spark"
    assert differing(every_row(lake / "gold"), every_row(local / "gold")) == {}
