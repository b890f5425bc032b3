"""``python -m deploy.release``: the check of a commit, and the files that are not packages.

``check`` runs before anything is built. ``make release`` then builds the packages with other
modules. ``pack`` adds the archives of the documentation and the chart, and the checksums.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Final

import click

from deploy.bundle import archive
from deploy.errors import DeployError

ROOT: Final = Path(__file__).parents[1]
SUMS: Final = "SHA256SUMS"
_CHART: Final = "jmxlake-agent"
_VERSIONS: Final = (
    ("deploy/helm/Chart.yaml", r"^(version|appVersion): (.+)$"),
    ("deploy/kafka/pom.xml", r"^  <(version)>(.+)</version>$"),
    ("deploy/kafka/aiven/pom.xml", r"^  <(version)>(.+)</version>$"),
    ("deploy/agent.yaml", r"^# yaml-language-server: \$(schema)=.*/v(.+)/deploy/"),
)
"""Other files with the version."""


@click.group()
def main() -> None:
    """Check a release, and pack the files that are not packages."""


@main.command()
def check() -> None:
    """Check whether this commit can be released."""
    click.echo(f"release {version()}: {checked()}")


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
def pack(folder: Path) -> None:
    """Add the documentation, the chart and SHA256SUMS to what is in FOLDER."""
    when = archive.commit_time()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        site = work / f"jmxlake-docs-{version()}"
        _build_site(site, when)
        archive.settle(site, when)
        archive.pack(site, folder / f"{site.name}.tar.gz", when)
        chart = Path(shutil.copytree(ROOT / "deploy/helm", work / _CHART))
        archive.settle(chart, when)
        archive.pack(chart, folder / f"{_CHART}-{version()}.tgz", when)
    for line in checksums(folder):
        click.echo(line)


def version() -> str:
    """Return the version of the Python package, which all parts of a release share."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return str(told["project"]["version"])


def checked() -> str:
    """What is released: a tag, or a commit without one, which is a rehearsal.

    Raises:
        DeployError: Files differ from the commit, or a version from another.
    """
    if changed := _git("status", "--porcelain"):
        raise DeployError(f"{len(changed)} files are not as committed: commit or stash them first")
    wanted = version()
    for file, pattern in _VERSIONS:
        for key, found in re.findall(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE):
            if found != wanted:
                raise DeployError(f"{key} of {file} is {found}: make it {wanted}")
    tags = [one for one in _git("tag", "--points-at", "HEAD") if re.match(r"v\d", one)]
    if not tags:
        return f"a rehearsal, the commit has no tag v{wanted}"
    if f"v{wanted}" not in tags:
        raise DeployError(f"the tag is {tags[0]}, the version {wanted}: change pyproject.toml")
    if f"## [{wanted}]" not in (ROOT / "CHANGELOG.md").read_text("utf-8"):
        raise DeployError(f"CHANGELOG.md has no [{wanted}]: move what is under Unreleased there")
    return f"v{wanted}"


def checksums(folder: Path) -> list[str]:
    """Write SHA256SUMS, as ``sha256sum -c`` reads it, over all other files; its lines."""
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}"
        for file in sorted(folder.iterdir())
        if file.is_file() and file.name != SUMS
    ]
    (folder / SUMS).write_text("\n".join(lines) + "\n", "utf-8")
    return lines


def _build_site(folder: Path, when: int) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environ = os.environ | {"SOURCE_DATE_EPOCH": str(when)}  # else its pages say when that was
    ran = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    if ran.returncode != 0:
        raise DeployError(f"make docs fails: {' '.join(ran.stderr.strip().splitlines()[-2:])}")


def _git(*arguments: str) -> list[str]:
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise DeployError(f"{' '.join(command[3:])}: a release is of a commit in git") from error
    return ran.stdout.splitlines()


if __name__ == "__main__":
    try:
        main()
    except DeployError as error:
        click.echo(f"release: {error}", err=True)
        sys.exit(1)
