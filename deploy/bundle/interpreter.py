"""The Python of a bundle: its program and its standard library."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.bundle import libraries
from deploy.errors import DeployError

_LEFT_OUT: Final = (
    # The suite of tests, graphical programs, and what only builds or installs other software.
    *("test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py", "lib2to3", "ensurepip"),
    *("pydoc_data", "distutils", "site-packages", "__pycache__", "_tkinter.*", "config-*", "*.a"),
    *("_test*.so", "_xxtestfuzz*", "_ctypes_test*", "xxlimited*"),
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python in a folder of its own.

    Attributes:
        home: Folder with ``bin`` and ``lib``.
        name: Program, such as ``python3.11``.
        machine: Architecture, as ``uname -m`` prints it.
    """

    home: Path
    name: str
    machine: str


def find(home: Path) -> Interpreter:
    """Return the Python of a folder.

    It does not run, so it can be for another architecture. The running Python compiles the
    bytecode, so both need the same version.

    Raises:
        DeployError: The folder does not contain such a Python, or belongs to the system.
    """
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    fix = f"use --python with the folder of a Python {name[6:]} (pyenv, `uv python install`)"
    if home.resolve() == Path("/usr"):
        raise DeployError(f"the Python in {home} belongs to the system: {fix}")
    program, library = home / "bin" / name, home / "lib" / name
    if not program.is_file() or not library.is_dir():
        raise DeployError(f"{home} does not contain bin/{name} and lib/{name}: {fix}")
    return Interpreter(home, name, libraries.machine(program))


def copy(interpreter: Interpreter, tree: Path) -> None:
    """Copy program and standard library into a tree."""
    name = interpreter.name
    (tree / "bin").mkdir(parents=True)
    shutil.copy2(interpreter.home / "bin" / name, tree / "bin" / name)
    shutil.copytree(
        interpreter.home / "lib" / name,
        tree / "lib" / name,
        ignore=shutil.ignore_patterns(*_LEFT_OUT),
    )
