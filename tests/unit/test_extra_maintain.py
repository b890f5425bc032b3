"""Commands of the extra ``maintain`` run without the packages of the other extras."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from typing import Final

import pytest

from lakehouse import tables
from lakehouse.cli.main import NEEDS_MAINTAIN
from tests import bronze_commits, gold_builder

ARGUMENTS: Final = {
    "doctor": ["{lake}", "--days", "400"],
    "export": ["{lake}", "subjects", "--format", "csv"],
    "maintain": ["{lake}", "--dry-run"],
    "views": ["{lake}", "--dialect", "duckdb"],
    "watched-groups": ["{lake}", "--topic", "orders", "--group", "billing-*"],
}
OTHERS: Final = ("duckdb", "httpx", "jinja2", "numpy", "pandas", "pyarrow", "pyspark")
"""Packages that only other extras install."""

_RUN: Final = """
import json, sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OTHERS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

commands, OTHERS = json.loads(sys.argv[1])
sys.meta_path.insert(0, Missing())
from click.testing import CliRunner
from lakehouse.cli.main import main
ran = {one[0]: CliRunner().invoke(main, one) for one in commands}
print(json.dumps({name: (one.exit_code, one.output) for name, one in ran.items()}))
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """Return the exit code and output of each command in a process without these packages."""
    lake = tmp_path_factory.mktemp("lake")
    bronze_commits.make(str(lake), {})
    bronze_commits.commit_all(str(lake), {}, "a", range(1, 3))
    seen = dict.fromkeys(("first_seen", "last_seen"), dt.datetime(2026, 11, 16, tzinfo=dt.UTC))
    rows = {tables.SUBJECTS: [{"cluster": "c", "kind": "topic", "topic": "orders", **seen}]}
    for table in tables.GOLD:
        gold_builder.put(lake, table, *rows.get(table, ()))
    commands = [
        [name, *(word.format(lake=lake) for word in words)] for name, words in ARGUMENTS.items()
    ]
    ran = subprocess.run(
        [sys.executable, "-c", _RUN, json.dumps([commands, OTHERS])],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found: dict[str, tuple[int, str]] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("command", NEEDS_MAINTAIN)
def test_command_needs_no_other_extra(outputs: dict[str, tuple[int, str]], command: str) -> None:
    code, output = outputs[command]
    expected = 4 if command == "doctor" else 0  # doctor has findings
    assert (code, output) == (expected, output)


def test_views_are_complete(outputs: dict[str, tuple[int, str]]) -> None:
    assert 'CREATE OR REPLACE VIEW "kafka"."events"' in outputs["views"][1]
