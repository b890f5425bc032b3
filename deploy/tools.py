"""Programs that build, test and audit a release: virtual environments and Go programs.

They are installed when first used, into the folder of the jars of ``demo.jars``. The name of each
has its version. A list NAME.txt has the programs, NAME.lock their versions and hashes (``make
lock``).
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

from demo.errors import DemoError
from demo.jars import cache_folder
from deploy import go
from deploy.errors import DeployError

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPLOY: Final = "tools"
"""What builds and tests deploy/."""

AUDIT: Final = "audit"
"""What make audit and make sbom run."""

_KUSTOMIZE: Final = go.Program("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "v5.7.1")
_HELM: Final = go.Program("helm", "helm.sh/helm/v3/cmd/helm", "v3.22.0")
# Later versions need a module that the Go module proxy does not serve.
_NFPM: Final = go.Program("nfpm", "github.com/goreleaser/nfpm/v2/cmd/nfpm", "v2.45.2")
_ACTIONLINT: Final = go.Program(
    "actionlint", "github.com/rhysd/actionlint/cmd/actionlint", "v1.7.12"
)
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


def program(name: str, tools: str = DEPLOY) -> Path:
    """A program of a list, such as ``ansible-lint`` or ``python``.

    Raises:
        DeployError: It could not be installed.
    """
    return _environment(tools) / "bin" / name


def kustomize() -> Path:
    """The program kustomize, built from its Go module if it is not there yet.

    Raises:
        DeployError: It could not be built.
    """
    return _built(_KUSTOMIZE)


def helm() -> Path:
    """The program helm, in the same way."""
    return _built(_HELM)


def nfpm() -> Path:
    """The program nfpm, which makes .deb and .rpm, in the same way."""
    return _built(_NFPM)


def actionlint() -> Path:
    """The program actionlint, which checks GitHub workflows, in the same way."""
    return _built(_ACTIONLINT)


def _built(program: go.Program) -> Path:
    try:
        return go.built(program, cache_folder() / "deploy")
    except DemoError as error:
        raise DeployError(str(error)) from error


def _environment(tools: str) -> Path:
    lock = Path(__file__).with_name(f"{tools}.lock")
    content = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    folder = cache_folder() / "deploy" / f"{tools}-{content}-{sys.version_info.minor}"
    done = folder / ".installed"
    if not done.is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder.parent / "lock"):
            if not done.is_file():
                _install(folder, lock)
                done.touch()
    return folder


def _install(folder: Path, lock: Path) -> None:
    click.echo(f"Installing {lock.name}, once ...", err=True)
    python = str(folder / "bin" / "python")
    for command in (
        [str(uv()), "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)],
        [
            str(uv()),
            "pip",
            "install",
            "--quiet",
            "--python",
            python,
            "--require-hashes",
            "-r",
            str(lock),
        ],
    ):
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS
            )
        except subprocess.TimeoutExpired as error:
            raise DeployError(f"{lock.name}: not installed in {_INSTALL_SECONDS} s") from error
        if ran.returncode != 0:
            raise DeployError(f"{lock.name}: not installed: {' '.join(ran.stderr.split())}")


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)  # one installation at a time
        yield


def main() -> int:
    """Make all of them, or a list's, and print their folder; for a Makefile."""
    try:
        if sys.argv[1:]:
            click.echo(program("python", sys.argv[1]).parent)
            return 0
        click.echo(program("python").parent)
        click.echo(kustomize())
    except DeployError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
