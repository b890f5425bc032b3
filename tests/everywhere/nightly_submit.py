"""The recipe for a standalone cluster in docs/engines.md: workers' Python from an archive.

The command is the page's, with other places. The archive is an environment that borrows the tests'
libraries, because no test of this kind asks the package index. ``make test-cluster`` runs it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from demo.jars import delta_jars
from tests.docs.test_spark_cluster import SUBMITTED
from tests.everywhere.gold_rows import differing, gold_rows
from tests.rig.spark_processes import HOME, LOOPBACK, StandaloneCluster, bare_environment

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.spark

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 900


def archived(folder: Path) -> Path:
    """Return an environment as an archive."""
    made = folder / "jmxlake-venv"
    line = [sys.executable, "-m", "venv", "--without-pip", str(made)]
    subprocess.run(line, check=True, timeout=SECONDS)
    (packages,) = made.glob("lib/python*/site-packages")
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib"))
    with tarfile.open(folder / "jmxlake-venv.tar.gz", "w:gz") as archive:
        archive.add(made, ".")
    return folder / "jmxlake-venv.tar.gz"


def with_places(cluster: StandaloneCluster, archive: Path, lake: Path) -> Iterator[str]:
    """Yield the page's command with jars instead of packages and executors of one core."""
    settings = (cluster.conf / "spark-defaults.conf").read_text("utf-8").splitlines()
    places = {
        "spark://master:7077": dict(line.split(None, 1) for line in settings)["spark.master"],
        "deploy/spark/": f"{ROOT}/deploy/spark/",
        "jmxlake-venv.tar.gz": str(archive),
        "spark.pyspark.driver.python=jmxlake-venv/bin/python":
            f"spark.pyspark.driver.python={sys.executable}",
        "s3://bucket/lake": str(lake),
    }  # fmt: skip
    jars = ",".join(map(str, delta_jars()))
    here = {"executor.cores": "1", "executor.memory": "512m", "driver.host": LOOPBACK}
    yield str(HOME / "bin" / "spark-submit")
    for name, value in {**here, "driver.bindAddress": LOOPBACK}.items():
        yield from ("--conf", f"spark.{name}={value}")
    words = iter(SUBMITTED[0])
    for word in words:
        if word == "--packages":
            next(words)
            yield from ("--jars", jars)
            continue
        for told, meant in places.items():
            word = word.replace(told, meant)  # noqa: PLW2901 - one place after the other
        yield word


def test_job_with_archive_gives_local_gold(
    wheel: Path, lake: Path, wanted: dict[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    ours = tmp_path / "lake"
    shutil.copytree(lake / "bronze", ours / "bronze")
    archive = archived(tmp_path)
    with StandaloneCluster(tmp_path / "cluster") as cluster:
        environment = bare_environment(SPARK_HOME=str(HOME), PYTHONPATH=str(wheel))
        ran = subprocess.run(
            [*with_places(cluster, archive, ours)],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
            timeout=SECONDS,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-3000:]
        unpacked = [*cluster.folder.glob("work-*/app-*/*/jmxlake-venv/bin/python")]
    assert unpacked
    assert differing(gold_rows(ours / "gold"), wanted) == {}
