"""``python -m deploy.audit``: clean, vulnerable and unknown are three different ends."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from deploy import audit, tools
from deploy.errors import DeployError

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
CLICK = {"name": "click", "version": "8.3.1", "vulns": []}
BAD = {"name": "yaml", "version": "1", "vulns": [{"id": "PYSEC-1"}, {"id": "GHSA-2"}]}
SKIPPED = {"name": "rich", "skip_reason": "Dependency not found on PyPI"}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    """Run the command with a fake pip-audit that prints a text and ends with a code."""
    lock = tmp_path / "requirements.lock"
    lock.write_text("click==8.3.1\n")

    def run(output: str, code: int, *options: str) -> Result:
        tool = tmp_path / "pip-audit"
        tool.write_text(
            f"#!/bin/sh\ncat <<'E'\n{output}\nE\necho 'no route to host' >&2\nexit {code}\n"
        )
        tool.chmod(0o755)
        return CliRunner().invoke(audit.main, [str(lock), "--tool", str(tool), *options])

    return run


def answer(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


@pytest.mark.parametrize(
    ("output", "tool_code", "code", "state"),
    [
        (answer(CLICK), 0, 0, "clean"),
        (answer(CLICK, BAD), 1, 1, "vulnerable"),
        (answer(BAD, SKIPPED), 1, 1, "vulnerable"),
        (answer(CLICK, SKIPPED), 0, 3, "unknown"),
        (answer(SKIPPED), 0, 3, "unknown"),
        (answer(), 0, 3, "unknown"),
        ("", 1, 3, "unknown"),
        ("Traceback (most recent call last):", 1, 3, "unknown"),
        ("[]", 0, 3, "unknown"),
    ],
)
def test_audit_has_a_code_and_a_state_for_each_end(
    run: Callable[..., Result], output: str, tool_code: int, code: int, state: str
) -> None:
    ended = run(output, tool_code, "--json")
    assert ended.exit_code == code
    (line,) = ended.stdout.splitlines()
    assert json.loads(line)["audit"] == state
    shown = run(output, tool_code)
    assert shown.exit_code == code
    assert "Traceback" not in shown.output
    assert ("no known vulnerability" in shown.output) == (state == "clean")


def test_vulnerable_package_is_named(run: Callable[..., Result]) -> None:
    ended = run(answer(CLICK, BAD), 1)
    assert "requirements.lock: yaml 1 PYSEC-1: upgrade it, then run make lock" in ended.output
    found = json.loads(run(answer(CLICK, BAD, SKIPPED), 1, "--json").stdout)
    assert found["vulnerabilities"] == ["yaml 1 GHSA-2", "yaml 1 PYSEC-1"]
    assert (found["packages"], found["unknown"]) == (2, 1)


def test_service_out_of_reach_is_named(run: Callable[..., Result]) -> None:
    ended = run("", 1)
    assert "not audited: the service pypi gave no answer: no route to host" in ended.output


def test_tool_that_cannot_be_installed_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: str) -> Path:
        raise DeployError("audit.lock: not installed: no index")

    monkeypatch.setattr(tools, "program", fails)
    ended = CliRunner().invoke(audit.main, [])
    assert ended.exit_code == 3
    assert ended.output == "requirements.lock: not audited: audit.lock: not installed: no index\n"


def test_help_documents_the_exit_codes() -> None:
    text = " ".join(CliRunner().invoke(audit.main, ["--help"]).output.split())
    assert "Exits with 0 if" in text
    assert "with 3 if the advisory service" in text


@pytest.mark.parametrize("name", ["requirements.lock", "deploy/tools.lock", "deploy/audit.lock"])
def test_each_locked_package_has_a_hash_and_no_address(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    packages = re.split(r"(?m)^(?=[a-z0-9])", text)[1:]
    assert packages
    assert [one.split()[0] for one in packages if "--hash=sha256:" not in one] == []
    assert not re.search(r"https?://|--index-url|--find-links", text)


@pytest.mark.parametrize("name", [tools.DEPLOY, tools.AUDIT])
def test_lock_has_what_its_list_names(name: str) -> None:
    listed = re.findall(
        r"(?m)^[a-z][\w-]*==[\w.!]+", (ROOT / f"deploy/{name}.txt").read_text("utf-8")
    )
    locked = (ROOT / f"deploy/{name}.lock").read_text("utf-8")
    assert listed
    assert [one for one in listed if f"\n{one} " not in f"\n{locked}"] == []


def test_make_runs_the_audit() -> None:
    command = ["make", "--dry-run", "audit", "AUDIT=--json"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "-m deploy.audit --json" in ran.stdout
