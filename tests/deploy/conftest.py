from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from demo.jars import cache_folder, kafka_libs
from deploy import tools
from tests.deploy.machine import Machine, impossible

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
MADE_OF = ("collector", "lakehouse", "deploy/bundle", "deploy/debian", "deploy/systemd",
           "deploy/agent.yaml", "pyproject.toml", "requirements.lock", "LICENSE")  # fmt: skip


class Bundle(NamedTuple):
    """What a host installs."""

    tarball: Path
    package: Path


@pytest.fixture(scope="session")
def tool_python() -> str:
    """The Python that has what deploy/tools.txt names."""
    return str(tools.program("python"))


@pytest.fixture(scope="session")
def bundle() -> Bundle:
    """Tarball and Debian package of this checkout, made anew where anything in them has changed."""
    content = hashlib.sha256(sys.version.encode())
    for name in MADE_OF:
        place = ROOT / name
        files = [place] if place.is_file() else sorted(place.rglob("*"))
        for file in files:
            if file.is_file() and "__pycache__" not in file.parts:
                content.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    folder = cache_folder() / "deploy" / f"bundle-{content.hexdigest()[:12]}"
    if not list(folder.glob("*.deb")):
        for old in folder.parent.glob("bundle-*/*"):
            old.unlink()  # a hundred and fifty megabytes each
        subprocess.run(
            [sys.executable, "-m", "deploy.bundle", "--deb", "--out", str(folder)],
            cwd=ROOT, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    (tarball,), (package,) = folder.glob("*.tar.gz"), folder.glob("*.deb")
    return Bundle(tarball, package)


@pytest.fixture(scope="module")
def machine(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A host with a real systemd, without a network, and with what a broker host has.

    One for a module; its tests say what they need of it, and leave nothing that stands in the way.
    """
    reason = impossible()
    if reason is not None:
        pytest.skip(reason)
    seen = {
        "bundle": bundle.tarball.parent,
        "deploy": ROOT / "deploy",
        "java": ROOT / "tests/deploy/java",
        "libs": kafka_libs(),
        "tools": Path(tools.program("python")).parents[1],
    }
    with Machine(tmp_path_factory.mktemp("machine"), seen) as running:
        yield running
