"""Shared libraries of a tree: a copy of every library it needs, except a few of the host."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deploy.errors import DeployError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

HOST_S: Final = re.compile(
    r"(ld-linux.*|linux-vdso|lib(c|m|dl|pthread|rt|util|resolv|nsl|anl|stdc\+\+|gcc_s))\.so\.[0-9]+"
)
"""Libraries of the host. glibc belongs to the kernel and the loader. The host's Java needs
libstdc++ in the same process, perhaps a newer one than ours."""
_MACHINES: Final = {62: "x86_64", 183: "aarch64"}
"""``e_machine`` of an ELF header."""
_SYSTEM: Final = ("/usr/lib/{}-linux-gnu", "/lib/{}-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib")
_NEEDED: Final = re.compile(r"\(NEEDED\).*\[(.+)\]")
_WANTED_GLIBC: Final = re.compile(r"GLIBC_(\d+)\.(\d+)")
_ELF: Final = b"\x7fELF"


def gather(tree: Path, home: Path, patchelf: Path) -> list[str]:
    """Copy the libraries of the interpreter into ``tree/lib``, and make its files load them there.

    Wheels contain their own libraries and stay as they are.

    Args:
        tree: Tree with ``bin`` and ``lib``, before the installation of wheels.
        home: Folder of the interpreter; its libraries have priority over those of the system.
        patchelf: Program of that name.

    Returns:
        Names of the copied libraries.

    Raises:
        DeployError: A library does not exist on this machine.
    """
    folder = tree / "lib"
    files = list(elf_files(tree))
    folders = [home / "lib", *(Path(one.format(machine(files[0]))) for one in _SYSTEM)]
    libraries = _closure(files, folders)
    for name, source in libraries.items():
        shutil.copy2(source, folder / name)
        (folder / name).chmod(0o644)
        files.append(folder / name)
    for file in files:
        if _needed(file):
            origin = f"$ORIGIN/{os.path.relpath(folder, file.parent)}"
            _run([str(patchelf), "--set-rpath", origin, str(file)])
    return sorted(libraries)


def least_glibc(tree: Path) -> str:
    """Return the minimum glibc version of every file in a tree, such as ``2.34``."""
    wanted = {(2, 17)}
    for file in elf_files(tree):
        versions = _WANTED_GLIBC.findall(_run(["readelf", "--version-info", str(file)]))
        wanted |= {(int(major), int(minor)) for major, minor in versions}
    return ".".join(map(str, max(wanted)))


def elf_files(tree: Path) -> Iterator[Path]:
    """Yield programs and shared libraries of a folder."""
    for file in sorted(tree.rglob("*")):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as opened:
                if opened.read(4) == _ELF:
                    yield file


def machine(file: Path) -> str:
    """Return the architecture of a program or library, as ``uname -m`` prints it.

    Raises:
        DeployError: The file is not a program, or its architecture is not supported.
    """
    with file.open("rb") as opened:
        header = opened.read(20)
    found = _MACHINES.get(int.from_bytes(header[18:20], "little"))
    if header[:4] != _ELF or found is None:
        raise DeployError(f"{file} is not a program for {' or '.join(_MACHINES.values())}")
    return found


def _closure(files: Iterable[Path], folders: list[Path]) -> dict[str, Path]:
    """Return the missing libraries of files by name, and the missing libraries of those."""
    waiting = list(files)
    present = {file.name for file in waiting}
    found: dict[str, Path] = {}
    while waiting:
        file = waiting.pop()
        for name in _needed(file):
            if name not in present and name not in found and not HOST_S.fullmatch(name):
                found[name] = _located(name, file, folders)
                waiting.append(found[name])
    return found


def _located(name: str, file: Path, folders: list[Path]) -> Path:
    for place in (folder / name for folder in folders):
        if place.is_file() and machine(place) == machine(file):
            return place.resolve()
    raise DeployError(f"{file.name} needs {name}, which is not on this machine")


def _needed(file: Path) -> list[str]:
    return _NEEDED.findall(_run(["readelf", "--dynamic", "--wide", str(file)]))


def _run(command: list[str]) -> str:
    environ = os.environ | {"LC_ALL": "C"}
    try:
        ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    except FileNotFoundError as error:
        raise DeployError(f"{command[0]} is missing: install it") from error
    except subprocess.CalledProcessError as error:
        raise DeployError(f"{' '.join(command)}: {error.stderr.strip()}") from error
    return ran.stdout
