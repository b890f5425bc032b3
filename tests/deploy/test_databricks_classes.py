"""The bundle's resources as Databricks' own classes see them; the rest is in tests/unit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.bundle_file import of_target, read

TOLD = read()


@pytest.mark.parametrize("target", list(TOLD["targets"]))
def test_databricks_own_classes_take_every_resource(target: str, tool_python: str) -> None:
    script = str(Path(__file__).with_name("databricks_classes.py"))

    def complaints(resources: dict[str, Any]) -> str:
        ran = subprocess.run(
            [tool_python, script], input=json.dumps(resources), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    resources = of_target(TOLD, target)
    assert complaints(resources) == ""
    wrong = json.loads(json.dumps(resources))
    wrong["jobs"]["rollup"]["max_concurent_runs"] = 1
    wrong["alerts"]["rollup_late"]["evaluation"]["comparison_operator"] = "MORE_THAN"
    told = complaints(wrong)
    assert "max_concurent_runs" in told
    assert "MORE_THAN" in told
