"""``jmxlake report`` of the facts of an earlier report: what needs no Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from lakehouse.cli.main import main
from lakehouse.report.csv_files import FILES
from tests import sample_facts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def saved(tmp_path: Path) -> str:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(sample_facts.demo()), encoding="utf-8")
    return str(file)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


def test_everything_is_made_of_the_facts_alone(saved: str, tmp_path: Path):
    page, folder = tmp_path / "new" / "report.html", tmp_path / "csv"
    done = run(saved, "--html", page, "--csv", folder, "--json", "-")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == sample_facts.demo()
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert {one.name for one in folder.iterdir()} == {f"{file.name}.csv" for file in FILES}
    assert b"\r\n" in (folder / "events.csv").read_bytes()


def test_names_that_are_no_text_are_written_all_the_same(tmp_path: Path):
    facts, file = sample_facts.hostile(), tmp_path / "evil.json"
    file.write_text(json.dumps(facts))
    again = tmp_path / "again.json"
    done = run(file, "--json", again, "--csv", tmp_path / "csv", "--html", tmp_path / "page.html")
    assert done.exit_code == 0, done.stderr
    assert json.loads(again.read_text(encoding="utf-8")) == facts


def test_a_teams_report_is_one_command(saved: str, tmp_path: Path):
    file = tmp_path / "owners.yaml"
    file.write_text('owners: [{team: storage, topics: ["a*"]}]')
    done = run(saved, "--owners", file, "--team", "storage", "--json", "-")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["team"] == "storage"
    assert {one["topic"] for one in told["min_isr"]["topics"]} == {"audit-log"}
    assert told["min_isr"]["topics"][0]["team"] == "storage"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--team", "storage"], "this report has no owners"),
        (["--owners", "/nowhere.yaml"], "/nowhere.yaml: No such file"),
        (["--week", "2026-W47"], "Omit --week"),
        (["--cluster", "x", "--gold", "a.b"], "Omit --gold, --cluster"),
        (["--html", "/proc/nobody/page.html"], "Choose a writable file"),
    ],
)
def test_what_cannot_be_is_one_line(saved: str, arguments: list[str], told: str):
    done = run(saved, *arguments)
    assert done.exit_code != 0
    assert done.stdout == ""
    assert told in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "report.json:1:2: not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "not a report"),
        ('{"format": 1}', "not a report"),
        (json.dumps(sample_facts.demo() | {"format": 9}), "format 9, and this version reads 2"),
        (b"\xff\xfe", "UTF-16"),
    ],
)
def test_a_file_of_something_else_is_one_line(tmp_path: Path, content: str | bytes, told: str):
    file = tmp_path / "report.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = run(file)
    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert told in line


def test_a_team_of_a_lake_needs_the_owners_before_spark_starts():
    done = run("s3://nowhere/lake", "--team", "storage")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--team requires --owners" in done.stderr
