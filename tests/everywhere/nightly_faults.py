"""Single rollups by a Spark cluster that is not as it should be: one line each, nothing doubled.

The Pythons of the workers are real ones with other packages; one of them has another release of
DuckDB, which comes from the package index. ``make test-cluster`` runs it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pytest

from bench.spark_processes import StandaloneCluster
from lakehouse.core.lake import Lake
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup import lease
from tests.everywhere.commands import Jmxlake
from tests.everywhere.gold_rows import differing, gold_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.spark

PACKAGES: Final = Path(sysconfig.get_path("purelib"))
OF_DUCKDB: Final = ("duckdb", "_duckdb", "adbc_driver_duckdb")
SECONDS: Final = 600


def python_without(folder: Path, *names: str) -> Path:
    """Make an environment with the tests' packages except those whose names start so."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    (own,) = folder.glob("lib/python*/site-packages")
    for package in PACKAGES.iterdir():
        if not package.name.startswith(names):
            (own / package.name).symlink_to(package)
    return folder / "bin" / "python"


def other_duckdb(folder: Path) -> tuple[Path, str]:
    """Make an environment with another release of DuckDB; return its Python and the release."""
    python = python_without(folder, *OF_DUCKDB)
    (own,) = folder.glob("lib/python*/site-packages")
    wanted = f"duckdb!={duckdb.__version__}"
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*uv, "--target", str(own), wanted], check=True, timeout=SECONDS)
    code = "import duckdb; print(duckdb.__version__)"
    told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return python, told.stdout.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(folder / "cluster", workers=1) as running:
        yield running


@pytest.fixture
def ours(lake: Path, tmp_path: Path) -> Path:
    """Bronze of the small fleet, not rolled up."""
    shutil.copytree(lake / "bronze", tmp_path / "lake" / "bronze")
    return tmp_path / "lake"


def driver(cluster: StandaloneCluster, wheel: Path, python: Path | None = None) -> Jmxlake:
    own = {} if python is None else {"PYSPARK_PYTHON": str(python)}
    return Jmxlake(wheel, cluster.folder, {**cluster.environment, **own})


def is_free(lake: Path) -> bool:
    return lease.holder(LocalEngine(Lake(str(lake)))) is None


@pytest.mark.parametrize("missing", [("duckdb", *OF_DUCKDB), ("pyarrow",), ("pandas",)])
def test_worker_without_a_package_is_one_line_and_the_next_rollup_is_whole(
    missing: tuple[str, ...], cluster: StandaloneCluster, wheel: Path, ours: Path,
    wanted: dict[str, list[dict[str, Any]]], tmp_path: Path,
) -> None:  # fmt: skip
    python = python_without(tmp_path / "python", *missing)
    said = driver(cluster, wheel, python).refusal("rollup", str(ours))
    assert said.startswith(f"jmxlake: {missing[0]} is missing in Spark's Python workers: install ")
    assert "PYSPARK_PYTHON" in said
    assert is_free(ours)
    if missing[0] == "duckdb":
        driver(cluster, wheel)("rollup", str(ours))
        assert differing(gold_rows(ours / "gold"), wanted) == {}


def test_worker_with_another_duckdb_is_one_line(
    cluster: StandaloneCluster, wheel: Path, ours: Path, tmp_path: Path
) -> None:
    python, release = other_duckdb(tmp_path / "python")
    said = driver(cluster, wheel, python).refusal("rollup", str(ours))
    assert said == (
        f"jmxlake: this worker has duckdb {release} and the driver {duckdb.__version__}: "
        f"install duckdb=={duckdb.__version__} on the workers"
    )
    assert is_free(ours)


def test_of_two_drivers_at_once_one_rolls_up_and_one_ends_with_3(
    cluster: StandaloneCluster, wheel: Path, ours: Path, wanted: dict[str, list[dict[str, Any]]]
) -> None:
    both = driver(cluster, wheel)
    with ThreadPoolExecutor(2) as pool:
        ended = [*pool.map(lambda _: both.ended("rollup", str(ours)), range(2))]
    assert sorted(code for code, _, _ in ended) == [0, 3]
    (said,) = [told.splitlines()[-1] for code, _, told in ended if code == 3]
    assert "is rolling up since" in said
    assert differing(gold_rows(ours / "gold"), wanted) == {}
    assert is_free(ours)


def test_master_that_is_away_is_one_line(
    cluster: StandaloneCluster, wheel: Path, ours: Path, tmp_path: Path
) -> None:
    with StandaloneCluster(tmp_path / "gone", workers=1) as gone:
        away = Jmxlake(wheel, tmp_path, gone.environment)
    said = away.refusal("rollup", str(ours))
    assert said.startswith("jmxlake: Spark does not start: ")
    assert is_free(ours)
    assert cluster.pids
