"""What is published, built once; and clean environments with what the lock says.

Not part of ``make test``: it asks the package index. ``make test-packaging`` runs it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
SECONDS = 900


@dataclass(frozen=True)
class Published:
    """A wheel and a source distribution."""

    wheel: Path
    sdist: Path


def built(source: Path, into: Path) -> Published:
    """What hatchling makes of a source tree, in a process of its own."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=SECONDS)
    (wheel,), (sdist,) = into.glob("*.whl"), into.glob("*.tar.gz")
    return Published(wheel, sdist)


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return built(ROOT, tmp_path_factory.mktemp("dist"))


@dataclass(frozen=True)
class Environment:
    """A virtual environment of one extra, and an empty home."""

    folder: Path
    home: Path

    @property
    def environ(self) -> dict[str, str]:
        """The variables of its programs."""
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8"}

    def run(
        self, program: str, *arguments: str, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """A program of it, of which nothing of ours is in the environment or the folder."""
        return subprocess.run(
            [str(self.folder / "bin" / program), *arguments],
            env=self.environ | environ,
            cwd=self.home, capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip

    def python(self, code: str) -> str:
        """What a few lines of Python print."""
        ran = self.run("python", "-c", code)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@pytest.fixture(scope="session")
def environment(
    published: Published, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str | None], Environment]:
    """Makes the environment of an extra, or of none, in the versions and with the hashes locked."""
    made: dict[str | None, Environment] = {}

    def make(extra: str | None) -> Environment:
        if extra not in made:
            folder = tmp_path_factory.mktemp(extra or "bare") / "venv"
            uv("venv", "--python", sys.executable, str(folder))
            wanted = f"{published.wheel}[{extra}]" if extra else str(published.wheel)
            uv(
                "pip", "install", "--python", str(folder / "bin" / "python"),
                "--constraints", str(ROOT / "requirements.lock"), wanted,
            )  # fmt: skip
            home = folder.parent / "home"
            home.mkdir()
            made[extra] = Environment(folder, home)
        return made[extra]

    return make


def uv(*arguments: str) -> None:
    program = Path(sys.executable).parent / "uv"
    ran = subprocess.run(
        [str(program), "--quiet", "--no-config", *arguments],
        env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
