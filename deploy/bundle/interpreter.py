"""A Python that is carried along: its program, its standard library, its shared library."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.errors import DeployError

_ASK: Final = """
import json, sys, sysconfig
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2],
    "full": sys.version.split()[0],
    "home": sys.base_prefix,
    "program": getattr(sys, "_base_executable", sys.executable),
    "stdlib": sysconfig.get_path("stdlib"),
    "scheme": sysconfig.get_default_scheme(),
    "shared": sysconfig.get_config_var("INSTSONAME") or "",
    "libdir": sysconfig.get_config_var("LIBDIR") or "",
}))
"""
_LEFT_OUT: Final = (
    # The suite of tests, graphical programs, and what only builds or installs other software.
    *("test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py", "lib2to3", "ensurepip"),
    *("pydoc_data", "distutils", "site-packages", "__pycache__", "_tkinter.*", "config-*", "*.a"),
    *("_test*.so", "_xxtestfuzz*", "_ctypes_test*", "xxlimited*"),
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Where a Python lies.

    Attributes:
        version: Such as ``3.11``.
        full: Such as ``3.11.7``.
        program: Its executable.
        stdlib: Folder of the standard library.
        shared: Its shared library, if it has one.
    """

    version: str
    full: str
    program: Path
    stdlib: Path
    shared: Path | None


def look_at(python: str) -> Interpreter:
    """What a Python says of itself; of a virtual environment, the Python below it.

    Raises:
        DeployError: It does not run, is too old, or is spread over the system.
    """
    try:
        ran = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise DeployError(f"{python} does not run: {error}; name a Python by --python") from error
    told = json.loads(ran.stdout)
    if tuple(map(int, told["version"].split("."))) < (3, 11):
        raise DeployError(f"{python} is Python {told['full']}: name one of 3.11 or later")
    if told["home"] == "/usr" or told["scheme"] == "posix_local":
        raise DeployError(
            f"{python} belongs to the system and cannot be carried: name one that lies in a folder "
            "of its own by --python, of pyenv or `uv python install`"
        )
    shared = Path(told["libdir"]) / told["shared"]
    return Interpreter(
        version=told["version"],
        full=told["full"],
        program=Path(told["program"]).resolve(),
        stdlib=Path(told["stdlib"]),
        shared=shared.resolve() if ".so" in told["shared"] and shared.is_file() else None,
    )


def copy(interpreter: Interpreter, tree: Path) -> Path:
    """Lay it below ``tree`` as ``bin/pythonX.Y`` and ``lib/pythonX.Y``; the program is returned."""
    name = f"python{interpreter.version}"
    program = tree / "bin" / name
    program.parent.mkdir(parents=True)
    shutil.copy2(interpreter.program, program)
    shutil.copytree(
        interpreter.stdlib,
        tree / "lib" / name,
        symlinks=False,
        ignore=shutil.ignore_patterns(*_LEFT_OUT),
    )
    (tree / "lib" / name / "site-packages").mkdir()
    if interpreter.shared is not None:
        shutil.copy2(interpreter.shared, tree / "lib" / interpreter.shared.name)
    return program
