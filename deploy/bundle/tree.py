"""The tree itself: an interpreter, jmxlake in it, and two programs that begin them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy import tools
from deploy.bundle import interpreter, libraries
from deploy.errors import DeployError

ROOT: Final = Path(__file__).parents[2]
EXTRAS: Final = "agent,maintain"
PROGRAMS: Final = {"jmxlake-agent": "collector.cli.main", "jmxlake": "lakehouse.cli.main"}
"""By name, the module whose ``main`` it begins."""

# Isolated: neither the caller's PYTHONPATH nor his working directory has a say. No bytecode is
# written, for the tree belongs to root and has its own.
_LAUNCHER: Final = """\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/python{version}" -I -B -c 'from {module} import main; main(prog_name="{name}")' "$@"
"""

_OF_THE_BUILD: Final = ("direct_url.json", "uv_cache.json")
"""What an installer notes of where a wheel lay, and of when it was made."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree that is done.

    Attributes:
        path: Its folder.
        version: Of jmxlake.
        python: Of the interpreter.
        glibc: The least that a host must have.
    """

    path: Path
    version: str
    python: str
    glibc: str


def grow(path: Path, python: str, work: Path) -> Tree:
    """Make the tree.

    Args:
        path: Where; it must not be there yet.
        python: The interpreter to carry.
        work: A folder for what is needed in between.

    Raises:
        DeployError: It cannot be made.
    """
    chosen = interpreter.look_at(python)
    program = interpreter.copy(chosen, path)
    libraries.gather(path, tools.program("patchelf"))
    wheel = _wheel(work)
    _install(program, wheel)
    _forget_where(path)
    _compile(program, path)
    version = wheel.name.split("-")[1]
    for name, module in PROGRAMS.items():
        launcher = path / "bin" / name
        launcher.write_text(
            _LAUNCHER.format(version=chosen.version, module=module, name=name), "utf-8"
        )
        launcher.chmod(0o755)
    _leave_only(path / "bin", {*PROGRAMS, program.name})
    shutil.copy2(ROOT / "LICENSE", path / "LICENSE")
    return Tree(path, version, chosen.full, libraries.least_glibc(path))


def _wheel(work: Path) -> Path:
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(work)], cwd=ROOT)
    (wheel,) = work.glob("jmxlake-*.whl")
    return wheel


def _install(program: Path, wheel: Path) -> None:
    """As the lock has it, hashes included; the lock knows more extras than these two."""
    _run(
        [
            *(str(tools.uv()), "pip", "install", "--quiet", "--no-config"),
            *("--python", str(program), "--break-system-packages", "--link-mode", "copy"),
            *("--verify-hashes", "--only-binary", ":all:"),
            *("-c", str(ROOT / "requirements.lock"), f"{wheel}[{EXTRAS}]"),
        ]
    )


def _forget_where(path: Path) -> None:
    """Nothing in the tree tells where and when it was built: two builds are the same to the bit.

    Records name the programs that wheels bring, too, by the digest of a first line with the build's
    path; those programs are left out.
    """
    for record in path.glob("lib/python*/site-packages/*.dist-info/RECORD"):
        told = [f"{record.parent.name}/{name}," for name in _OF_THE_BUILD]
        for name in _OF_THE_BUILD:
            record.with_name(name).unlink(missing_ok=True)
        lines = record.read_text("utf-8").splitlines(keepends=True)
        kept = [line for line in lines if not line.startswith((*told, "../../../bin/"))]
        record.write_text("".join(kept), "utf-8")


def _compile(program: Path, path: Path) -> None:
    """Bytecode beside the sources: nobody may write it later, and a start would take twice as long.

    By content, not by time: an archive has times of its own.
    """
    _run(
        [
            *(str(program), "-I", "-B", "-m", "compileall", "-f", "-q"),
            *("--invalidation-mode", "unchecked-hash"),
            *("-s", str(path), "-p", "/opt/jmxlake", str(path / "lib")),
        ]
    )


def _leave_only(folder: Path, names: set[str]) -> None:
    """Programs that wheels bring have the build's path in their first line."""
    for file in folder.iterdir():
        if file.name not in names:
            file.unlink()


def _run(command: list[str], cwd: Path | None = None) -> None:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    try:
        subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise DeployError(f"{command[0]} is missing: make setup") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines()
        raise DeployError(f"{Path(command[0]).name} failed: {' '.join(said[-3:])}") from error
