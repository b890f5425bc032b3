"""The dashboards as Grafana's own classes read them; tests/unit and tests/packaging run queries."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

DASHBOARDS = sorted((Path(__file__).parents[2] / "deploy" / "grafana").glob("*.json"))


def problems(tool_python: str, *files: Path) -> str:
    script = Path(__file__).with_name("grafana_classes.py")
    ran = subprocess.run(
        [tool_python, str(script), *map(str, files)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_each_dashboard_has_only_keys_and_values_of_the_schema(tool_python: str) -> None:
    assert len(DASHBOARDS) == 3
    assert problems(tool_python, *DASHBOARDS) == ""


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("repeatDirection", "x", "'x' is not Literal"),
        ("maxPerRows", 4, "maxPerRows: not in the schema"),
        ("description", 7, "7 is not str"),
        ("options", {"graphMode": "lines"}, "'lines' is not BigValueGraphMode"),
    ],
)
def test_wrong_key_or_value_is_found(
    key: str, value: Any, problem: str, tool_python: str, tmp_path: Path
) -> None:
    board = json.loads(DASHBOARDS[0].read_text("utf-8"))
    board["panels"][0][key] = value
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(board), "utf-8")
    assert problem in problems(tool_python, file)
