"""What is missing is said before any Spark is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakehouse import session
from lakehouse.errors import EngineError

_WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
from lakehouse.cli import main
main(["rollup", "s3://bucket/lake"])
"""


@pytest.mark.parametrize(
    ("package", "environment", "told"),
    [
        ("pyspark", {}, "is missing: install jmxlake[lakehouse]"),
        ("delta", {}, "delta is missing: install jmxlake[lakehouse]"),
        ("grpc", {"SPARK_REMOTE": "sc://127.0.0.1:1"}, "Install jmxlake[connect]"),
        ("pandas", {"SPARK_REMOTE": "sc://127.0.0.1:1"}, "Install jmxlake[connect]"),
    ],
)
def test_a_missing_package_is_one_line(
    package: str, environment: dict[str, str], told: str, tmp_path: Path
):
    program = tmp_path / "without.py"  # pyspark takes a program without a file for a doctest
    program.write_text(_WITHOUT)
    ran = subprocess.run(
        [sys.executable, str(program), package],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
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
    monkeypatch.setenv(session.JARS_SETTING, both)
    with pytest.raises(EngineError, match=r"s3 holds no jar"):
        session.session()


@pytest.mark.parametrize(
    ("jars", "told"),
    [
        (None, "is Java 17 installed, and is Maven Central reached"),
        ("jars", "is Java 17 installed?"),
    ],
)
def test_a_spark_that_does_not_start_says_what_it_needs(
    jars: str | None, told: str, tmp_path: Path
):
    environment = {**os.environ}
    environment.pop(session.JARS_SETTING, None)
    if jars is not None:
        (tmp_path / jars).mkdir()
        (tmp_path / jars / "delta.jar").touch()
        environment[session.JARS_SETTING] = str(tmp_path / jars)
    root = str(Path(__file__).parents[2])
    program = tmp_path / "rollup.py"
    program.write_text("from lakehouse.cli import main\nmain(['rollup', 's3://bucket/lake'])\n")
    ran = subprocess.run(
        [sys.executable, str(program)],
        env={**environment, "PYTHONPATH": root, "JAVA_HOME": str(tmp_path / "none")},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert ran.returncode == 1
    assert told in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr
