"""Finding a browser, and what is said where it cannot print; a real one: test_pdf.py."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil
import pytest
from click.testing import CliRunner

from lakehouse.cli.main import main
from lakehouse.errors import PrintError
from lakehouse.report.page import page
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path


def program(folder: Path, name: str, script: str) -> str:
    """A stand-in for a browser: a real one does not fail when it is asked to."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def test_the_first_browser_on_path_prints(tmp_path: Path):
    program(tmp_path, "google-chrome", "")
    wanted = program(tmp_path, "chromium", "")
    assert page.browser({"PATH": str(tmp_path)}) == wanted


def test_the_setting_comes_before_path(tmp_path: Path):
    program(tmp_path, "chromium", "")
    mine = program(tmp_path, "my browser", "")
    assert page.browser({"PATH": str(tmp_path), "JMXLAKE_CHROMIUM": mine}) == mine
    with pytest.raises(PrintError, match="JMXLAKE_CHROMIUM: /nowhere is not a program"):
        page.browser({"PATH": str(tmp_path), "JMXLAKE_CHROMIUM": "/nowhere"})


def test_without_a_browser_it_is_one_line_before_any_work(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JMXLAKE_CHROMIUM", raising=False)
    target = tmp_path / "report.pdf"
    run = CliRunner().invoke(main, ["report", "s3://nowhere/lake", "--pdf", str(target)])
    assert (run.exit_code, run.stdout) == (1, "")
    (line,) = run.stderr.splitlines()
    assert "a PDF requires Chromium, and none is on PATH" in line
    assert "JMXLAKE_CHROMIUM" in line


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo '[1:2:1122/073000.1:ERROR:zygote.cc(100)] no sandbox here' >&2", "no sandbox here"),
        ("exit 3", "it gave no reason"),
        ('for one; do case "$one" in --print-to-pdf=*) echo no > "${one#*=}";; esac; done',
         "printed nothing"),
    ],
)  # fmt: skip
def test_a_browser_that_prints_nothing_is_one_line(tmp_path: Path, script: str, told: str):
    with pytest.raises(PrintError, match=told) as caught:
        page.printed("<p>", program(tmp_path, "chromium", script))
    assert "\n" not in str(caught.value)


def test_a_browser_that_hangs_is_ended_with_all_it_started(tmp_path: Path):
    ids = tmp_path / "ids"
    slow = program(tmp_path, "chromium", f"sleep 300 & echo $! >> {ids}; echo $$ >> {ids}; wait")
    # Long enough for a shell to start and write on a busy machine.
    with pytest.raises(PrintError, match=r"did not print within 3 s"):
        page.printed("<p>", slow, seconds=3)
    started = [int(one) for one in ids.read_text().split()]
    assert len(started) == 2
    wait_for(lambda: not any(map(_runs, started)), 60)


def _runs(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_only_root_gives_up_the_sandbox(tmp_path: Path, monkeypatch):
    told = tmp_path / "told"
    fake = program(tmp_path, "chromium", f'echo "$@" > {told}')
    for user, given in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        with pytest.raises(PrintError):
            page.printed("<p>", fake)
        assert ("--no-sandbox" in told.read_text()) is given
