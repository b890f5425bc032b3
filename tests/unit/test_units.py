"""The units as systemd itself reads and judges them, and what they must have."""

from __future__ import annotations

import re
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import pytest

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
