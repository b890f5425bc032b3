"""What a demo leaves behind and says when a step of it fails; fakes play and report."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from demo import run
from demo.errors import DemoError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from demo.truth import Truth

    FakePlay = Callable[[Path, Truth, list[str]], None]

FROM, TO = "2026-11-28T17:00:00.000000+00:00", "2026-11-28T17:02:00.000000+00:00"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run, "kafka_libs", lambda: tmp_path)
    monkeypatch.setattr(run, "summarize", lambda _: None)
    monkeypatch.setattr(run, "summary_text", lambda _: "verdicts\n")
    return tmp_path / "demo"


def fake_play(*failures: str, error: Exception | None = None) -> FakePlay:
    """Leave a lake, and note failures or end with an error."""

    def play(folder: Path, truth: Truth, noted: list[str]) -> None:
        truth.set("from", FROM)
        truth.set("to", TO)
        (folder / "lake").mkdir()
        noted.extend(failures)
        if error is not None:
            raise error

    return play


def fake_report(folder: Path, start: str, end: str) -> None:
    (folder / "report.json").write_text(json.dumps({"from": start, "to": end}))


def failing_report(*_: object) -> None:
    raise DemoError("jmxlake weekly ended with 1.")


@pytest.mark.parametrize(
    "play",
    [
        fake_play("The agent of broker-1 ended with 1."),
        fake_play(error=DemoError("The agent of broker-1 ended with 1.")),
        fake_play(error=subprocess.SubprocessError("The agent of broker-1 ended with 1.")),
        fake_play(error=OSError("The agent of broker-1 ended with 1.")),
    ],
)
def test_run_failed_step_still_reports(
    play: FakePlay, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_play", play)
    monkeypatch.setattr(run, "_report", fake_report)
    with pytest.raises(DemoError, match="broker-1 ended with 1") as raised:
        run.run(folder, report=True)
    assert json.loads((folder / "report.json").read_text()) == {"from": FROM, "to": TO}
    assert json.loads((folder / "truth.json").read_text())["scenarios_missed"] == []
    assert "The report is of what was scraped until then" in str(raised.value)


def test_run_failed_report_names_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_play", fake_play())
    monkeypatch.setattr(run, "_report", failing_report)
    with pytest.raises(DemoError, match="jmxlake weekly ended with 1") as raised:
        run.run(folder, report=True)
    command = f"jmxlake weekly {folder / 'lake'} --window 30s --from {FROM} --to {TO}"
    assert command in str(raised.value)


def test_run_without_a_lake_says_to_run_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_cluster(*_: object) -> None:
        raise DemoError("broker-1 ended; its log: ...")

    monkeypatch.setattr(run, "_play", no_cluster)
    assert run.main(["--folder", str(folder)]) == 1
    error = capsys.readouterr().err
    assert "error: broker-1 ended" in error
    assert "Run the demo again" in error
    assert "jmxlake weekly" not in error


def test_run_missed_scenario_is_told_and_ends_well(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(folder: Path, truth: Truth, noted: list[str]) -> None:
        fake_play()(folder, truth, noted)
        truth.miss("expiry", "Waited 240 s in vain: records of slow-readers expiring.")

    monkeypatch.setattr(run, "_play", play)
    monkeypatch.setattr(run, "_report", fake_report)
    assert run.main(["--folder", str(folder)]) == 0
    assert "Not played: expiry. The report is of the others." in capsys.readouterr().out
