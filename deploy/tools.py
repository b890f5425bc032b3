"""What builds and tests deploy/: a virtual environment in the cache, kustomize and Helm.

Both lie in the folder that ``demo.jars`` keeps its jars in, under a name that carries the versions,
and are made when they are first asked for.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from demo import go
from demo.errors import DemoError
from demo.jars import cache_folder
from deploy.errors import DeployError

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIST: Final = Path(__file__).with_name("tools.txt")
_KUSTOMIZE: Final = go.Program("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "v5.7.1")
_HELM: Final = go.Program("helm", "helm.sh/helm/v3/cmd/helm", "v3.22.0")
_INSTALL_SECONDS: Final = 600


def uv() -> Path:
    """The program uv, of the environment that runs this.

    Raises:
        DeployError: It is not there.
    """
    found = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if found is None:
        raise DeployError("uv is missing: install jmxlake[dev]")
    return Path(found)


def program(name: str) -> Path:
    """A program of ``tools.txt``, such as ``ansible-lint`` or ``python``.

    Raises:
        DeployError: It could not be installed.
    """
    return _environment() / "bin" / name


def kustomize() -> Path:
    """The program kustomize, built from its Go module if it is not there yet.

    Raises:
        DeployError: It could not be built.
    """
    return _built(_KUSTOMIZE)


def helm() -> Path:
    """The program helm, in the same way."""
    return _built(_HELM)


def _built(program: go.Program) -> Path:
    try:
        return go.built(program, cache_folder() / "deploy")
    except DemoError as error:
        raise DeployError(str(error)) from error


def _environment() -> Path:
    content = hashlib.sha256(_LIST.read_bytes()).hexdigest()[:12]
    folder = cache_folder() / "deploy" / f"tools-{content}-{sys.version_info.minor}"
    done = folder / ".installed"
    if not done.is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / "lock"):
            if not done.is_file():
                _install(folder)
                done.touch()
    return folder


def _install(folder: Path) -> None:
    click.echo("Installing what deploy/ is tested with, once ...", err=True)
    python = str(folder / "bin" / "python")
    for command in (
        [str(uv()), "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        [str(uv()), "pip", "install", "--quiet", "--python", python, "-r", str(_LIST)],
    ):
        ran = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS
        )
        if ran.returncode != 0:
            raise DeployError(f"{_LIST}: not installed: {' '.join(ran.stderr.split())}")


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)  # one installation at a time
        yield


def main() -> int:
    """Make all of them; for a Makefile, so that the first run says what it waits for."""
    try:
        click.echo(program("python").parent)
        click.echo(kustomize())
    except DeployError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
