"""GitHub workflows, checked by actionlint and zizmor. ``make test-packaging`` runs it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deploy import tools
from tests.packaging.conftest import ROOT

FOLDER = ROOT / ".github/workflows"


def actionlint(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [str(tools.actionlint()), "-no-color", *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def zizmor(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(tools.program("zizmor", tools.AUDIT)), "--offline", "--no-config", "--quiet"]
    return subprocess.run(
        [*command, "--persona", "auditor", "--color", "never", str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_actionlint_and_zizmor_find_nothing() -> None:
    files = sorted(FOLDER.glob("*.yml"))
    assert len(files) >= 3
    checked = actionlint(*files)
    assert checked.returncode == 0, checked.stdout
    audited = zizmor(FOLDER)
    assert audited.returncode == 0, audited.stdout


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("needs: [test, build]", "needs: [test, biuld]", "biuld"),
        ("github.repository_owner", "github.repositry_owner", "repositry_owner"),
        ('"${GITHUB_REF_NAME#v}"', "${{ github.ref_nam }}", "ref_nam"),
    ],
)
def test_actionlint_finds_a_mistake(before: str, after: str, found: str, tmp_path: Path) -> None:
    checked = actionlint(changed(tmp_path, before, after))
    assert checked.returncode == 1
    assert found in checked.stdout


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("@3d3c42e5aac5ba805825da76410c181273ba90b1", "@v7", "unpinned-uses"),
        ("permissions: {}", "permissions: write-all", "excessive-permissions"),
        ("persist-credentials: false", "persist-credentials: true", "artipacked"),
        ('"${GITHUB_REF_NAME#v}"', "${{ github.ref_name }}", "template-injection"),
    ],
)
def test_zizmor_finds_a_weakness(before: str, after: str, found: str, tmp_path: Path) -> None:
    changed(tmp_path, before, after)
    audited = zizmor(tmp_path)
    assert audited.returncode > 0
    assert found in audited.stdout


def changed(folder: Path, before: str, after: str) -> Path:
    """Copy the workflows with another text in release.yml."""
    workflows = Path(shutil.copytree(FOLDER, folder / ".github/workflows"))
    file = workflows / "release.yml"
    text = file.read_text("utf-8")
    assert before in text
    file.write_text(text.replace(before, after), "utf-8")
    return file
