"""What is missing is said before any Spark is started."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse.core import spark_session
from lakehouse.errors import EngineError

pytestmark = pytest.mark.slow

_WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from lakehouse.cli.main import main
main(["slo", "publish", "main.bronze", "--gold", "main.gold"])
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder of packages with ours in it, as ``__file__`` tells it, and no source tree around."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "lakehouse").symlink_to(Path(spark_session.__file__).parents[1])
    return folder


@pytest.mark.parametrize(
    ("package", "environment", "told"),
    [
        ("pyspark", {}, "is missing: install jmxlake[spark]"),
        ("delta", {}, "delta is missing: install jmxlake[spark]"),
        ("grpc", {"SPARK_REMOTE": "sc://127.0.0.1:1"}, "Install jmxlake[connect]"),
        ("pandas", {"SPARK_REMOTE": "sc://127.0.0.1:1"}, "Install jmxlake[connect]"),
    ],
)
def test_a_missing_package_is_one_line(
    installed: Path, package: str, environment: dict[str, str], told: str, tmp_path: Path
):
    program = tmp_path / "without.py"  # pyspark takes a program without a file for a doctest
    program.write_text(_WITHOUT)
    ran = subprocess.run(
        [sys.executable, str(program), package],
        env={**os.environ, "PYTHONPATH": str(installed), **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 1
    assert told in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr


def test_a_folder_without_jars_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "delta.jar").touch()
    (tmp_path / "s3").mkdir()
    both = os.pathsep.join(str(tmp_path / name) for name in ("delta", "s3"))
    monkeypatch.setenv(spark_session.JARS_SETTING, both)
    with pytest.raises(EngineError, match=r"s3: this folder contains no jar"):
        spark_session.session()


def jar(folder: Path) -> Path:
    """Something by the name of a jar, in a new folder."""
    folder.mkdir(parents=True)
    (folder / "delta.jar").touch()
    return folder


@pytest.mark.parametrize("beside", [True, False])
def test_jars_are_taken_from_beside_the_package_and_not_from_where_one_stands(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, beside: bool
):
    jar(tmp_path / ".cache" / "delta-of-somebody-else")
    found = [str(jar(installed / ".cache" / "delta-1"))] if beside else []
    spec = importlib.util.spec_from_file_location(
        "own", installed / "lakehouse" / "core" / "spark_session.py"
    )
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(own := importlib.util.module_from_spec(spec))
    monkeypatch.delenv(spark_session.JARS_SETTING, raising=False)
    monkeypatch.chdir(tmp_path)
    assert own._jar_folders() == found


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (False, "check that Java 17 is installed and that Maven Central is reachable"),
        (True, "check that Java 17 is installed"),
    ],
)
def test_a_spark_that_does_not_start_says_what_it_needs(
    installed: Path, tmp_path: Path, *, named: bool, told: str
):
    environment = {**os.environ}
    environment.pop(spark_session.JARS_SETTING, None)
    if named:
        environment[spark_session.JARS_SETTING] = str(jar(tmp_path / "jars"))
    jar(tmp_path / ".cache" / "delta-of-somebody-else")
    program = tmp_path / "rollup.py"
    asked = ["rollup", "main.bronze", "--gold", "main.gold"]
    program.write_text(f"from lakehouse.cli.main import main\nmain({asked})\n")
    ran = subprocess.run(
        [sys.executable, str(program)],
        env={**environment, "PYTHONPATH": str(installed), "JAVA_HOME": str(tmp_path / "none")},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 1
    assert told in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr
