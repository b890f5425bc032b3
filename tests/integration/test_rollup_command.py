"""``jmxlake rollup`` and ``jmxlake verify`` as a person or a job calls them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from lakehouse.cli.main import main
from lakehouse.core.lake import Lake
from lakehouse.engines.choice import engine_of
from lakehouse.engines.engine import Costs
from lakehouse.rollup import lease
from tests.lake_builder import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def empty(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables without a row: what costs nothing to roll up."""
    assert spark is not None
    root = tmp_path_factory.mktemp("empty")
    Batch().commit(root)
    return root


def test_stdout_has_the_outcome_only(empty: Path) -> None:
    run = CliRunner().invoke(main, ["rollup", str(empty), "--json"])
    assert run.exit_code == 0, run.stderr
    assert json.loads(run.stdout) == {
        "hours": 0, "how": "whole", "late_rows": 0, "left": 0,
        "runs": 0, "scrapes": 0, "members": 0,
        **Costs()._asdict(),
    }  # fmt: skip
    (line,) = (one for one in run.stderr.splitlines() if one.startswith("jmxlake: rollup"))
    assert line.startswith("jmxlake: rollup: no new data, ")
    again = CliRunner().invoke(main, ["rollup", str(empty)])
    assert (again.exit_code, again.stdout) == (0, "no new data\n")
    verified = CliRunner().invoke(main, ["verify", str(empty), "--seed", "3"])
    assert verified.exit_code == 0, verified.stderr
    assert verified.stdout == "0 rows of 0 hours compared, 0 differ (seed 3)\n"


def test_without_spark_it_does_the_same(tmp_path: Path) -> None:
    batch = Batch()
    batch.run("kafka.topic.bytes_in", 0, 10, 1.0, topic="t")
    batch.commit(tmp_path)
    for words in ("1 hour rolled up\n", "no new data\n"):
        run = CliRunner().invoke(main, ["rollup", str(tmp_path), "--engine", "local"])
        assert (run.exit_code, run.stdout) == (0, words), run.stderr
        assert "Spark" not in run.stderr
    run = CliRunner().invoke(main, ["verify", str(tmp_path), "--engine", "local", "--seed", "3"])
    assert run.exit_code == 0, run.stderr
    assert run.stdout.endswith("rows of 1 hours compared, 0 differ (seed 3)\n")


def test_a_second_one_ends_with_3_and_one_line(empty: Path) -> None:
    CliRunner().invoke(main, ["rollup", str(empty)])
    writer = engine_of(Lake(str(empty)), {}, lambda _: None, by_spark=False)
    with lease.hold(writer, lease.USUAL):
        for command in (["rollup", str(empty), "--tidy", "now"], ["verify", str(empty)]):
            run = CliRunner().invoke(main, command)
            assert run.exit_code == 3
            (line,) = [one for one in run.stderr.splitlines() if "starting Spark" not in one]
            assert "is rolling up since" in line


def test_impossible_rollup_is_one_line_and_exit_1(empty: Path, tmp_path: Path) -> None:
    Batch().commit(tmp_path)
    run = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert run.exit_code == 1
    assert "gold has no data" in run.stderr.splitlines()[-1]
    wrong = CliRunner().invoke(main, ["rollup", str(empty), "--since", "yesterday"])
    assert wrong.exit_code == 2
    assert "is not a date such as 2026-11-16" in wrong.stderr


@pytest.mark.usefixtures("spark")  # it has Delta's jars alone
def test_bucket_without_s3a_jars_names_the_documentation() -> None:
    run = CliRunner().invoke(main, ["verify", "s3a://observability/kafka"])
    assert run.exit_code == 1
    assert run.stderr.splitlines()[-1].endswith("the jars of S3A for a bucket (docs/engines.md)")
