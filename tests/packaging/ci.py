"""The pre-commit hook and the GitHub Action, in a clean environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from lakehouse.slo.openslo.objective_files import SHIPPED
from tests.packaging.conftest import ROOT, SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.packaging.conftest import Environment

(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return the folder of a repository with objectives."""
    shutil.copytree(SHIPPED, tmp_path / "objectives", ignore=shutil.ignore_patterns("optional"))
    return tmp_path


def break_one(repository: Path) -> None:
    file = repository / "objectives" / "min-isr.yaml"
    file.write_text(file.read_text("utf-8").replace("kind: SLO", "kind: SLOs"), "utf-8")


def hook(environment: Environment, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the hook as pre-commit does: its entry with its arguments, in the repository."""
    program, *words = HOOK["entry"].split()
    command = [str(environment.folder / "bin" / program), *words, *HOOK["args"]]
    return subprocess.run(
        command, cwd=folder, env=environment.environ,
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip


def test_hook_refuses_wrong_objectives(
    environment: Callable[[str | None], Environment], repository: Path
) -> None:
    (extra,) = HOOK["additional_dependencies"]
    made = environment(extra.removeprefix(".[").removesuffix("]"))
    passed = hook(made, repository)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    break_one(repository)
    refused = hook(made, repository)
    assert (refused.returncode, "min-isr.yaml:3" in refused.stdout) == (1, True), refused.stdout


def test_action_refuses_wrong_objectives(repository: Path, tmp_path: Path) -> None:
    """Run the steps of the action as a runner does; pip installs this checkout."""
    assert not [step for step in ACTION["runs"]["steps"] if "uses" in step]
    passed = action(repository, tmp_path / "temp")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    break_one(repository)
    refused = action(repository, tmp_path / "temp")
    assert (refused.returncode, "min-isr.yaml:3" in refused.stdout) == (1, True), refused.stdout


def action(repository: Path, temp: Path) -> subprocess.CompletedProcess[str]:
    temp.mkdir(exist_ok=True)
    environ = {
        "PATH": f"{Path(sys.executable).resolve().parent}:/usr/bin:/bin", "HOME": str(temp),
        "RUNNER_TEMP": str(temp), "GITHUB_ACTION_PATH": str(ROOT),
        "OBJECTIVES": ACTION["inputs"]["path"]["default"],
    }  # fmt: skip
    for step in ACTION["runs"]["steps"]:
        ran = subprocess.run(
            [step["shell"], "-e", "-c", step["run"]], cwd=repository, env=environ,
            capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip
        if ran.returncode != 0:
            break
    return ran
