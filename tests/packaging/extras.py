"""Each extra alone, in a clean environment: what it is for works, and it brings nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from lakehouse import tables
from tests import bronze_commits, gold_builder
from tests.packaging.conftest import SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.packaging.conftest import Environment, Published

    Make = Callable[[str | None], Environment]

HEAVY = {"pyspark", "py4j", "delta-spark", "duckdb", "pandas", "pyarrow", "numpy"}
OF_TESTS = {"pytest", "polars", "hypothesis", "mypy", "ruff", "confluent-kafka"}
_INSTALLED = """
from importlib.metadata import distributions
print("\\n".join(one.metadata["Name"].lower().replace("_", "-") for one in distributions()))
"""
_IMPORT = """
import importlib, pkgutil
package = importlib.import_module({name!r})
for one in pkgutil.walk_packages(package.__path__, {name!r} + "."):
    try:
        importlib.import_module(one.name)
        print("well", one.name)
    except Exception as error:
        print("not", one.name, type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    bronze_commits.make(str(root), {})
    bronze_commits.commit_all(str(root), {}, "a", range(1, 3))
    for table in tables.GOLD:
        gold_builder.put(root, table)
    return root


def installed(environment: Environment) -> set[str]:
    return set(environment.python(_INSTALLED).split())


def imported(environment: Environment, package: str) -> tuple[int, list[str]]:
    """How many modules of a package can be imported, and which cannot, and why."""
    lines = environment.python(_IMPORT.format(name=package)).splitlines()
    failed = [line.removeprefix("not ") for line in lines if line.startswith("not ")]
    return len(lines) - len(failed), failed


@pytest.mark.parametrize(
    "extra", [None, "agent", "jmxquery", "maintain", "local", "spark", "connect"]
)
def test_both_programs_say_what_they_can_do(environment: Make, extra: str | None) -> None:
    made = environment(extra)
    for program in ("jmxlake", "jmxlake-agent"):
        for option in ("--help", "--version"):
            ran = made.run(program, option)
            assert ran.returncode == 0, ran.stderr
    assert not installed(made) & OF_TESTS


@pytest.mark.parametrize("extra", [None, "agent", "jmxquery", "maintain"])
def test_what_runs_beside_brokers_brings_no_spark(environment: Make, extra: str | None) -> None:
    assert not installed(environment(extra)) & HEAVY


def test_the_agent_works(environment: Make, tmp_path: Path) -> None:
    made = environment("agent")
    count, (left_out,) = imported(made, "collector")
    assert count > 100
    assert left_out.startswith("collector.sources.jmx.jmxquery ConfigError")
    assert "install jmxlake[jmxquery]" in left_out, "for that is an extra of its own"
    beans = made.run("jmxlake-agent", "metrics", "--json")
    assert beans.returncode == 0, beans.stderr
    assert len(beans.stdout.splitlines()) > 50
    for what in ("config", "systemd-unit"):
        assert made.run("jmxlake-agent", what).stdout
    wrong = tmp_path / "agent.yaml"
    wrong.write_text("{}")
    ran = made.run("jmxlake-agent", "check", "--config", str(wrong))
    assert ran.returncode == 78
    assert "Traceback" not in ran.stderr


def test_the_maintenance_the_doctor_and_exports_work(
    environment: Make, lake: Path, tmp_path: Path
) -> None:
    made = environment("maintain")
    for package in ("maintain", "doctor"):
        count, failed = imported(made, f"lakehouse.ops.{package}")
        assert (count >= 2, failed) == (True, [])
    plans = made.run("jmxlake", "maintain", str(lake), "--dry-run", "--json")
    assert len(json.loads(plans.stdout)["tables"]) == 4, plans.stderr
    told = made.run("jmxlake", "doctor", str(lake), "--days", "400", "--json")
    assert told.returncode == 4, told.stderr
    assert json.loads(told.stdout)["agents"]
    file = str(tmp_path / "x.parquet")
    ran = made.run("jmxlake", "export", str(lake), "topics", "--format", "parquet", "--out", file)
    assert (ran.returncode, "no such rows" in ran.stderr) == (1, True), ran.stderr
    views = made.run("jmxlake", "views", str(lake), "--dialect", "duckdb")
    assert "CREATE OR REPLACE VIEW" in views.stdout, views.stderr


def test_a_lake_in_a_folder_needs_no_spark(environment: Make) -> None:
    brought = installed(environment("local"))
    assert brought >= {"deltalake", "duckdb", "pyarrow"}
    assert not brought & {"pyspark", "py4j", "delta-spark", "pandas"}


def test_the_lakehouse_is_whole(environment: Make, lake: Path) -> None:
    made = environment("spark")
    count, failed = imported(made, "lakehouse")
    assert (count > 80, failed) == (True, [])
    assert made.run("jmxlake", "doctor", str(lake)).returncode == 4
    assert installed(made) >= {"pyspark", "delta-spark", "duckdb", "pandas", "pyarrow"}
    assert not installed(made) & {"jpype1", "apscheduler"}


def test_what_databricks_installs_brings_no_spark_and_no_delta(environment: Make) -> None:
    made = environment("databricks")
    brought = installed(made)
    assert not brought & {"pyspark", "py4j", "delta-spark", "deltalake"}, "the platform has its own"
    assert brought >= {"jmxlake", "jinja2", "duckdb"}


def test_pip_itself_takes_the_wheel_by_its_path_with_an_extra(
    published: Published, environment: Make, tmp_path: Path
) -> None:
    """As ``%pip install "/Volumes/.../jmxlake.whl[databricks]"``, without asking for the rest."""
    made = environment("databricks")
    report = tmp_path / "report.json"
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(made.folder / "bin" / "python"), "install",
         "--dry-run", "--no-index", "--force-reinstall", "--no-deps", "--report", str(report),
         f"{published.wheel}[databricks]"],
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    (found,) = json.loads(report.read_text("utf-8"))["install"]
    assert found["requested_extras"] == ["databricks"]


def test_over_connect_there_is_a_client(environment: Make) -> None:
    made = environment("connect")
    assert made.python("import pyspark.sql.connect.session as s; print(s.SparkSession.__name__)")


@pytest.mark.parametrize(
    ("extra", "command", "needed"),
    [
        (None, ("jmxlake-agent", "metrics"), "jmxlake[agent]"),
        (None, ("jmxlake", "maintain", "/nowhere"), "jmxlake[maintain]"),
        (None, ("jmxlake", "doctor", "/nowhere"), "jmxlake[maintain]"),
        (None, ("jmxlake", "export", "/nowhere", "topics", "--format", "csv"), "jmxlake[maintain]"),
        ("maintain", ("jmxlake", "rollup", "/nowhere"), "jmxlake[local]"),
        ("spark", ("jmxlake-agent", "check", "--config", "/nowhere"), "jmxlake[agent]"),
    ],
)
def test_what_is_not_installed_is_one_line_that_says_what_to_install(
    environment: Make, extra: str | None, command: tuple[str, ...], needed: str
) -> None:
    ran = environment(extra).run(*command)
    assert ran.returncode == 1
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert needed in ran.stderr
