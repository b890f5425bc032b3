"""``jmxlake weekly``, as a person without Spark calls it, and as a job does."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner, Result

from lakehouse.cli.main import main
from lakehouse.core import lake as lakes
from lakehouse.core.lake import Lake
from lakehouse.engines.engine import ask
from lakehouse.engines.local_engine import LocalEngine
from lakehouse.rollup import lease
from lakehouse.tables import SLA
from tests.lake_builder import Batch
from tests.rollups import hours
from tests.servers import Room, chat

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.reads

SPAN = ("--from", "2026-11-16T10:00:00Z", "--to", "2026-11-16T11:00:00Z")


def without_spark(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.no_spark", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


def weekly(lake: Path, *arguments: str | Path) -> Result:
    command = ["weekly", str(lake), *SPAN, "--engine", "local", *map(str, arguments)]
    return CliRunner().invoke(main, command)


def test_two_commands_without_spark_make_a_report(tmp_path: Path) -> None:
    lake, page, facts = (tmp_path / name for name in ("lake", "report.html", "report.json"))
    made = without_spark("sample", lake, "--weeks", "1", "--until", "2026-11-23")
    assert made.returncode == 0, made.stderr
    told = without_spark("weekly", lake, "--html", page, "--json", facts)
    assert told.returncode == 0, told.stderr
    slow = re.compile(r" (so far|left)(, |$)")  # progress, which a slow machine shows
    said = [line for line in told.stderr.splitlines() if not slow.search(line)]
    took = "( ?[0-9]+ (h|m|min|s))+"
    phases = [
        "rollup: 168 hours rolled up",
        "objectives: .* SLO results, .*",
        "report",
        "HTML: .*report.html",
    ]
    for line, phase in zip(said, phases, strict=True):
        assert re.fullmatch(f"jmxlake: {phase}[,:] (under)?{took}", line), line
    assert "orders fell under min ISR" in told.stdout
    assert page.read_text("utf-8").startswith("<!doctype html>")
    report = json.loads(facts.read_text("utf-8"))
    assert (report["from"], report["week"]["iso"]) == ("2026-11-16T00:00:00Z", "2026-W47")
    engine = LocalEngine(lakes.at(str(lake)))
    ((number, statements),) = ask(
        engine, "SELECT count(*), max(r.statement) FROM {rows} r", rows=engine.rows(SLA)
    )
    assert f"objectives: {number} SLO results, {number} of them new or changed" in said[1]
    assert statements == 1
    assert number == sum(len(one["subjects"]) for one in report["objectives"])
    story = without_spark("explain", lake, "orders", "--week", "2026-W47")
    assert (story.returncode, "Topic orders" in story.stdout) == (0, True), story.stderr


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """A lake of two clusters."""
    root = tmp_path / "lake"
    hours(1, 0.0, 300.0).commit(root)
    hours(2, 0.0, cluster="cluster-b", agent="agent-2").commit(root)
    return root


def test_several_clusters_have_one_chosen_or_a_page_each(several: Path, tmp_path: Path) -> None:
    one = weekly(several, "--cluster", "cluster-b", "--json", "-")
    assert one.exit_code == 0, one.stderr
    assert json.loads(one.stdout)["cluster"] == "cluster-b"
    again = weekly(several)
    assert again.exit_code == 1
    assert "jmxlake: rollup: no new data, " in again.stderr
    assert "0 of them new or changed" in again.stderr
    assert "cluster-a, cluster-b" in again.stderr.splitlines()[-1]
    every = weekly(several, "--every-cluster", tmp_path / "pages")
    assert every.exit_code == 0, every.stderr
    assert [line.split()[0] for line in every.stdout.splitlines()] == [
        str(one) for one in sorted((tmp_path / "pages").glob("*.html"))
    ]
    assert len(list((tmp_path / "pages").glob("*.json"))) == 2


def test_weekly_report_is_sent(several: Path, tmp_path: Path) -> None:
    file = tmp_path / "send.yaml"
    file.write_text(yaml.safe_dump({"webhook": {"url_variable": "CHAT"}}))
    with chat(Room()) as room:
        command = ["weekly", str(several), *SPAN, "--engine", "local", "--send", str(file)]
        run = CliRunner(env={"CHAT": room.url}).invoke(
            main, [*command, "--every-cluster", str(tmp_path / "pages")]
        )
    assert run.exit_code == 0, run.stderr
    assert len(room.got) == 2
    assert run.stdout.count("posted to the address in the variable CHAT") == 2
    with chat(Room(500)) as room:
        run = CliRunner(env={"CHAT": room.url}).invoke(main, [*command, "--cluster", "cluster-a"])
    assert run.exit_code == 1
    assert "it answered 500" in run.stderr.splitlines()[-1]
    assert run.stdout.startswith("Kafka SLO report, cluster cluster-a, "), "it is still written"


def test_config_file_accepts_every_option(several: Path, tmp_path: Path) -> None:
    start, end = SPAN[1::2]
    options = {
        "lake": str(several), "from": start, "to": end, "engine": "local", "cluster": "cluster-b",
        "html": str(tmp_path / "pages/{week}.html"), "link": "https://a.example/{week}.html",
        "send": {"webhook": {"url_variable": "CHAT", "format": "teams"}},
    }  # fmt: skip
    file = tmp_path / "weekly.yaml"
    file.write_text(yaml.safe_dump(options))
    with chat(Room()) as room:
        run = CliRunner(env={"CHAT": room.url}).invoke(main, ["weekly", "--config", str(file)])
    assert run.exit_code == 0, run.stderr
    assert [one.name for one in (tmp_path / "pages").iterdir()] == ["2026-11-16.html"]
    ((_, message),) = room.got
    (button,) = message["attachments"][0]["content"]["actions"]
    assert button["url"] == "https://a.example/2026-11-16.html"
    assert run.stderr.splitlines()[-1].startswith("jmxlake: send: ")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--team", "storage"), 2, "--team requires --owners"),
        (("--every-cluster", "x", "--html", "y"), 2, "cannot be combined with other outputs"),
        (("--every-cluster", "x", "--cluster", "y"), 2, "cannot be combined with other outputs"),
        (("--send", "/nowhere.yaml"), 1, "/nowhere.yaml"),
        (("--owners", "/nowhere.yaml"), 1, "/nowhere.yaml"),
        (("--window", "5x"), 1, "5x"),
        (("--week", "2026-W47"), 2, "use either --week"),
        (("--options-file", "/nowhere.yaml"), 1, "/nowhere.yaml"),
    ],
)
def test_impossible_options_are_an_error_before_the_start(
    several: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    run = weekly(several, *arguments)
    assert (run.exit_code, run.stdout) == (code, "")
    assert told in run.stderr.splitlines()[-1]
    assert not (several / "gold").exists()


def test_running_rollup_exits_3(tmp_path: Path) -> None:
    Batch().commit(tmp_path)
    assert CliRunner().invoke(main, ["rollup", str(tmp_path), "--engine", "local"]).exit_code == 0
    hours(1, 0.0).commit(tmp_path)
    with lease.hold(LocalEngine(Lake(str(tmp_path))), lease.USUAL):
        run = weekly(tmp_path)
        stated = CliRunner().invoke(main, ["slo", "publish", str(tmp_path), *SPAN])
    for one in (run, stated):
        assert one.exit_code == 3, one.stderr
        assert "is rolling up since" in one.stderr.splitlines()[-1]
