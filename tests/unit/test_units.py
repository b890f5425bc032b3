"""The units as systemd itself reads and judges them, and what they must have."""

from __future__ import annotations

import re
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest
from click.testing import CliRunner

from lakehouse.cli.main import main
from lakehouse.cli.rollup import rollup

SYSTEMD = Path(__file__).parents[2] / "deploy/systemd"
UNITS = sorted(SYSTEMD.glob("*.service"))
EXPOSED_AT_MOST = 1.5  # of 10; systemd calls what is below 2 "OK" and a unit with nothing 9.6


def analyze(*arguments: str) -> str:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: install the package systemd")
    ran = subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, check=False
    )
    return ran.stdout + ran.stderr


def service(unit: Path) -> dict[str, str]:
    parser = RawConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(unit)
    return dict(parser["Service"])


@pytest.mark.parametrize("unit", UNITS, ids=lambda one: one.stem)
def test_systemd_finds_no_fault(unit: Path, tmp_path: Path) -> None:
    # The program is of the package: what is judged here is the unit.
    copied = tmp_path / unit.name
    copied.write_text(re.sub(r"/opt/jmxlake/bin/\S+", "/bin/true", unit.read_text("utf-8")))
    assert analyze("verify", str(copied)) == ""
    copied.write_text(copied.read_text().replace("ProtectHome=", "ProtectHoem="))
    assert "ProtectHoem" in analyze("verify", str(copied))


@pytest.mark.parametrize("unit", UNITS, ids=lambda one: one.stem)
def test_little_is_exposed(unit: Path) -> None:
    told = analyze("security", "--offline=true", str(unit))
    if "Unknown argument" in told or "unrecognized option" in told:
        pytest.skip("systemd-analyze is older than 250 and judges no files")
    (level,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert float(level) <= EXPOSED_AT_MOST, told


@pytest.mark.parametrize("unit", UNITS, ids=lambda one: one.stem)
def test_the_broker_goes_first(unit: Path) -> None:
    told = service(unit)
    assert int(told["OOMScoreAdjust"]) > 0
    assert told["MemoryMax"].endswith(("M", "G"))
    assert "CPUQuota" in told or int(told["CPUWeight"]) < 100
    assert told["LimitCORE"] == "0"  # a dump would hold passwords


def test_one_who_attaches_shares_what_java_needs_and_removes_nothing_of_the_broker_s() -> None:
    told = service(SYSTEMD / "attach.conf")
    assert told["User"] == told["Group"] == "kafka"
    assert (told["PrivateUsers"], told["PrivateTmp"], told["RemoveIPC"]) == ("no", "no", "no")


def test_weekly_timer_starts_the_service_each_monday(tmp_path: Path) -> None:
    for name in ("jmxlake-weekly.service", "jmxlake-weekly.timer"):
        text = (SYSTEMD / name).read_text("utf-8")
        (tmp_path / name).write_text(re.sub(r"/opt/jmxlake/bin/\S+", "/bin/true", text))
    timer = tmp_path / "jmxlake-weekly.timer"
    assert analyze("verify", str(timer)) == ""
    parser = RawConfigParser()
    parser.read(timer)
    assert parser["Timer"]["Persistent"] == "yes"
    said = analyze("calendar", parser["Timer"]["OnCalendar"])
    assert "Mon *-*-* 06:30:00" in said
    timer.write_text(timer.read_text("utf-8").replace("OnCalendar=Mon", "OnCalendar=Moonday"))
    assert "Moonday" in analyze("verify", str(timer))


def test_weekly_service_takes_the_file_and_waits_for_another_rollup() -> None:
    told = service(SYSTEMD / "jmxlake-weekly.service")
    assert told["RuntimeMaxSec"] == "4h"
    _, command, *arguments = told["ExecStart"].split()
    assert (command, arguments) == ("weekly", ["--config", "/etc/jmxlake/weekly.yaml"])
    assert told["RestartForceExitStatus"] == "3", "the code of a rollup that is running"
    assert "Restart" not in told, "what was sent is not sent again by itself"


def test_rollup_service_runs_every_minute_and_its_options_win() -> None:
    fields = service(SYSTEMD / "jmxlake-rollup.service")
    _, *words = fields["ExecStart"].replace("${LAKE}", "s3://b/lake").split()
    assert words.pop() == "$ROLLUP_OPTIONS"
    context = rollup.make_context("rollup", [*words[1:], "--every", "5m", "--engine", "spark"])
    assert (context.params["root"], context.params["as_json"]) == ("s3://b/lake", True)
    assert (context.params["every"], context.params["engine"]) == (300, "spark")
    assert rollup.make_context("rollup", words[1:]).params["every"] == 60
    assert fields["KillMode"] == "mixed", "Java must live until the batch has ended"
    assert fields["TimeoutStopSec"] == "15min"


@pytest.mark.parametrize("name", ["maintain", "rollup", "weekly", "weekly-timer"])
def test_command_prints_each_unit(name: str) -> None:
    run = CliRunner().invoke(main, ["systemd-unit", name])
    file = f"jmxlake-{name}.service" if name != "weekly-timer" else "jmxlake-weekly.timer"
    assert run.stdout == (SYSTEMD / file).read_text("utf-8")
    assert name != "maintain" or CliRunner().invoke(main, ["systemd-unit"]).stdout == run.stdout
