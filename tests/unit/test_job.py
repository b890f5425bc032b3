"""Commands as a platform runs them that takes any SystemExit for a failure."""

from __future__ import annotations

import pytest

from lakehouse.cli.main import job
from lakehouse.errors import JobFailedError


def test_a_command_that_went_well_returns(capsys: pytest.CaptureFixture[str]) -> None:
    job(["--version"])
    assert capsys.readouterr().out.startswith("jmxlake, version ")


def test_it_takes_the_arguments_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["jmxlake-job", "rollup", "--help"])
    job()
    assert "Update gold tables from bronze" in capsys.readouterr().out


def test_one_that_failed_is_an_exception_that_says_where_to_look(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(
        JobFailedError, match=r"^jmxlake rollup failed with exit code 1\. See the reason above"
    ):
        job(["rollup", "/nowhere"])
    assert capsys.readouterr().err == (
        "jmxlake: /nowhere: no such folder. Use the lake that the agents write to\n"
    )


def test_one_that_was_called_wrongly_is_an_exception_too() -> None:
    with pytest.raises(JobFailedError, match=r"^jmxlake without a command failed with exit code 2"):
        job([])
