"""The tree itself: an interpreter, jmxlake in it, and two programs that start them."""

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
EXTRAS: Final = "agent,maintain,local"
"""Extras that the units of ``deploy/systemd`` need."""
PROGRAMS: Final = {"jmxlake-agent": "collector.cli.main", "jmxlake": "lakehouse.cli.main"}
"""By name, the module whose ``main`` it begins."""

# Isolated: neither the caller's PYTHONPATH nor his working directory has a say. No bytecode is
# written, for the tree belongs to root and has its own.
_LAUNCHER: Final = """\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/{python}" -I -B -c 'from {module} import main; main(prog_name="{name}")' "$@"
"""

_LEAST_HOST: Final = "manylinux_2_28"  # Debian 10, Ubuntu 20.04, RHEL 8, or later

_OF_THE_BUILD: Final = ("direct_url.json", "uv_cache.json")
"""What an installer notes of where a wheel lay, and of when it was made."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A complete tree.

    Attributes:
        path: Its folder.
        version: Version of jmxlake.
        machine: Architecture, as ``uname -m`` prints it.
        glibc: Minimum glibc version of a host.
    """

    path: Path
    version: str
    machine: str
    glibc: str


def grow(path: Path, home: Path, work: Path) -> Tree:
    """Make the tree.

    Args:
        path: Its folder, which must not exist.
        home: Folder of the Python to bundle.
        work: Folder for intermediate files.

    Raises:
        DeployError: A step fails.
    """
    chosen = interpreter.find(home)
    interpreter.copy(chosen, path)
    libraries.gather(path, home, tools.program("patchelf"))
    wheel = _wheel(work)
    _install(path, chosen.machine, wheel)
    _forget_where(path)
    _compile(path)
    for name, module in PROGRAMS.items():
        launcher = path / "bin" / name
        text = _LAUNCHER.format(python=chosen.name, module=module, name=name)
        launcher.write_text(text, "utf-8")
        launcher.chmod(0o755)
    _leave_only(path / "bin", {*PROGRAMS, chosen.name})
    shutil.copy2(ROOT / "LICENSE", path / "LICENSE")
    (path / "share/jmxlake/weekly.yaml").write_text(_weekly(), "utf-8")
    return Tree(path, wheel.name.split("-")[1], chosen.machine, libraries.least_glibc(path))


def _wheel(work: Path) -> Path:
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(work)], cwd=ROOT)
    (wheel,) = work.glob("jmxlake-*.whl")
    return wheel


def _install(path: Path, machine: str, wheel: Path) -> None:
    """Install the locked versions with checked hashes, as wheels for the tree's architecture."""
    _run(
        [
            *(str(tools.uv()), "pip", "install", "--quiet", "--no-config"),
            *("--python", sys.executable, "--prefix", str(path), "--link-mode", "copy"),
            *("--python-platform", f"{machine}-{_LEAST_HOST}"),
            *("--verify-hashes", "--only-binary", ":all:"),
            *("-c", str(ROOT / "requirements.lock"), f"{wheel}[{EXTRAS}]"),
        ]
    )


def _weekly() -> str:
    """Return the commented configuration of the weekly report."""
    code = f"from {PROGRAMS['jmxlake']} import main; main()"
    return _run([sys.executable, "-c", code, "weekly", "--print-config"], cwd=ROOT)


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


def _compile(path: Path) -> None:
    """Bytecode beside the sources: nobody may write it later, and a start would take twice as long.

    By content, not by time: an archive has times of its own.
    """
    _run(
        [
            *(sys.executable, "-I", "-B", "-m", "compileall", "-f", "-q"),
            *("--invalidation-mode", "unchecked-hash"),
            *("-s", str(path), "-p", "/opt/jmxlake", str(path / "lib")),
        ]
    )


def _leave_only(folder: Path, names: set[str]) -> None:
    """Programs that wheels bring have the build's path in their first line."""
    for file in folder.iterdir():
        if file.name not in names:
            file.unlink()


def _run(command: list[str], cwd: Path | None = None) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    try:
        return subprocess.run(
            command, cwd=cwd, env=clean, capture_output=True, text=True, check=True
        ).stdout
    except FileNotFoundError as error:
        raise DeployError(f"{command[0]} is missing: make setup") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines()
        raise DeployError(f"{Path(command[0]).name} failed: {' '.join(said[-3:])}") from error
