"""``make release``: what a release is made of, the same bytes wherever the commit is built."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deploy import tools
from tests.packaging.builds import VERSION
from tests.packaging.conftest import ROOT, SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

VENV = Path(sys.prefix)
EXTRAS = ("agent", "connect", "databricks", "jmxquery", "local", "maintain", "spark")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A clean checkout of the commit, in a folder of its own, with this environment."""

    def clone(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name) / "jmxlake"
        git(ROOT, "clone", "--quiet", "--shared", ROOT, folder)
        (folder / ".cache").symlink_to((ROOT / ".cache").resolve())
        for file in ("requirements.lock", "pyproject.toml"):
            os.utime(folder / file, (0, 0))  # else make would install this environment anew
        return folder

    return clone


def git(folder: Path, *arguments: object) -> str:
    author = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    command = ["git", "-C", str(folder), *author, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def made(folder: Path, *more: str) -> Path:
    assert (VENV / ".installed").is_file()
    command = ["make", "release", f"VENV={VENV}", *more]
    ran = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=2 * SECONDS
    )
    assert ran.returncode == 0, ran.stderr
    assert "a rehearsal" in ran.stdout or f"v{VERSION}" in ran.stdout
    return folder / "dist"


@pytest.fixture(scope="module")
def dist(clone: Callable[[str], Path]) -> Path:
    return made(clone("release"))


def test_all_of_it_is_there_and_the_checksums_are_right(dist: Path) -> None:
    assert {one.name for one in dist.iterdir()} == {
        "SHA256SUMS",
        f"jmxlake-{VERSION}-linux-x86_64.tar.gz",
        f"jmxlake-{VERSION}-py3-none-any.whl",
        f"jmxlake-{VERSION}.tar.gz",
        f"jmxlake-agent-{VERSION}.tgz",
        f"jmxlake-docs-{VERSION}.tar.gz",
        f"jmxlake-kafka-{VERSION}.jar",
        f"jmxlake-kafka-aiven-{VERSION}.jar",
        f"jmxlake_{VERSION}_amd64.deb",
        f"jmxlake-{VERSION}-1.x86_64.rpm",
        "report.schema.json",
        *(f"jmxlake-{extra}.cdx.json" for extra in EXTRAS),
    }
    ran = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        check=False,
        cwd=dist,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count(": OK") == len(list(dist.iterdir())) - 1


def test_another_clone_gives_the_same_bytes(dist: Path, clone: Callable[[str], Path]) -> None:
    again = made(
        clone("again"), "EXTRAS=maintain"
    )  # the others' bytes are tests/packaging/sbom.py's
    first = set((dist / "SHA256SUMS").read_text("utf-8").splitlines())
    second = set((again / "SHA256SUMS").read_text("utf-8").splitlines())
    assert len(second) == len(first) - len(EXTRAS) + 1
    assert second <= first


def test_helm_takes_the_chart(dist: Path) -> None:
    chart = dist / f"jmxlake-agent-{VERSION}.tgz"
    ran = subprocess.run(
        [str(tools.helm()), "show", "chart", str(chart)], capture_output=True, text=True, check=True
    )
    assert f"appVersion: {VERSION}" in ran.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("echo x > new.txt", "1 files are not as committed"),
        ("git tag v9.9.9", f"the tag is v9.9.9, the version {VERSION}: change pyproject.toml"),
        ("sed -i s/^version:.*/version:\\ 9.9.9/ deploy/helm/Chart.yaml; git commit -qam x",
         f"version of deploy/helm/Chart.yaml is 9.9.9: make it {VERSION}"),
        (f"sed -i 's/^## .{VERSION}.*//' CHANGELOG.md; git commit -qam x --allow-empty; "
         f"git tag -f v{VERSION}", f"CHANGELOG.md has no [{VERSION}]"),
    ],
)  # fmt: skip
def test_what_cannot_be_released_is_refused_in_one_line(
    change: str, said: str, clone: Callable[[str], Path]
) -> None:
    folder = clone("refused")
    person = {
        f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    subprocess.run(["bash", "-c", change], cwd=folder, check=True, env=os.environ | person)
    command = [sys.executable, "-m", "deploy.release", "check"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1
