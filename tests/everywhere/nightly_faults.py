"""Single rollups by a Spark that is not as it should be: one line each, nothing doubled.

The Pythons of the workers are real ones with other packages; one of them has another release of
DuckDB, which comes from the package index. ``make test-cluster`` runs it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest

from demo.ports import free_ports
from lakehouse.core.lake import Lake
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup import lease
from tests.everywhere.commands import Jmxlake
from tests.everywhere.gold_rows import differing, gold_rows
from tests.rig.spark_processes import LOOPBACK, conf_folder, settings

pytestmark = pytest.mark.spark

PACKAGES: Final = Path(sysconfig.get_path("purelib"))
OF_DUCKDB: Final = ("duckdb", "_duckdb", "adbc_driver_duckdb")
SECONDS: Final = 600
SPARK: Final = ("--engine", "spark")


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


@pytest.fixture
def ours(lake: Path, tmp_path: Path) -> Path:
    """Bronze of the small fleet, not rolled up."""
    shutil.copytree(lake / "bronze", tmp_path / "lake" / "bronze")
    return tmp_path / "lake"


def with_workers(laptop: Jmxlake, python: Path) -> Jmxlake:
    """Return the command where Spark's workers have another Python."""
    return replace(laptop, environment={**laptop.environment, "PYSPARK_PYTHON": str(python)})


def is_free(lake: Path) -> bool:
    return lease.holder(LocalEngine(Lake(str(lake)))) is None


@pytest.mark.parametrize("missing", [OF_DUCKDB, ("pyarrow",)])
def test_worker_without_a_package_is_one_line_and_the_next_rollup_is_whole(
    missing: tuple[str, ...], laptop: Jmxlake, ours: Path,
    wanted: dict[str, list[dict[str, Any]]], tmp_path: Path,
) -> None:  # fmt: skip
    python = python_without(tmp_path / "python", *missing)
    said = with_workers(laptop, python).refusal("rollup", str(ours), *SPARK)
    assert said.startswith(f"jmxlake: {missing[0]} is missing in Spark's Python workers. Install ")
    assert "PYSPARK_PYTHON" in said
    assert is_free(ours)
    laptop("rollup", str(ours), *SPARK)
    assert differing(gold_rows(ours / "gold"), wanted) == {}


def test_worker_with_another_duckdb_is_one_line(
    laptop: Jmxlake, ours: Path, tmp_path: Path
) -> None:
    python, release = other_duckdb(tmp_path / "python")
    said = with_workers(laptop, python).refusal("rollup", str(ours), *SPARK)
    assert said == (
        f"jmxlake: this worker has duckdb {release} and the driver {duckdb.__version__}. "
        f"Install duckdb=={duckdb.__version__} on the workers"
    )
    assert is_free(ours)


def test_of_two_drivers_at_once_one_rolls_up_and_one_ends_with_3(
    laptop: Jmxlake, ours: Path, wanted: dict[str, list[dict[str, Any]]]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        ended = [*pool.map(lambda _: laptop.ended("rollup", str(ours), *SPARK), range(2))]
    assert sorted(code for code, _, _ in ended) == [0, 3]
    (said,) = [told.splitlines()[-1] for code, _, told in ended if code == 3]
    assert "is rolling up since" in said
    assert differing(gold_rows(ours / "gold"), wanted) == {}
    assert is_free(ours)


def test_master_that_is_away_is_one_line(wheel: Path, ours: Path, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    conf = conf_folder(
        tmp_path, settings(tmp_path, **{"spark.master": f"spark://{LOOPBACK}:{port}"})
    )
    said = Jmxlake(wheel, tmp_path, {"SPARK_CONF_DIR": str(conf)}).refusal("rollup", str(ours))
    assert said.startswith("jmxlake: Spark failed: ")
    assert said.endswith("check the cluster in spark.master, then run the command again")
    assert is_free(ours)
