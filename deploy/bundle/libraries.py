"""Shared libraries: what the tree needs of others is laid into it, but for a few of the host's."""

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

_HOST_S: Final = re.compile(
    r"(ld-linux.*|linux-vdso|lib(c|m|dl|pthread|rt|util|resolv|nsl|anl|stdc\+\+|gcc_s))\.so\.[0-9]+"
)
"""glibc belongs to the kernel and the loader. libstdc++ the host's Java needs in the same process,
and perhaps a newer one than ours would be."""
_LINE: Final = re.compile(r"^\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?$", re.MULTILINE)
_WANTED_GLIBC: Final = re.compile(r"GLIBC_(\d+)\.(\d+)")
_ELF: Final = b"\x7fELF"


def gather(tree: Path, patchelf: Path) -> list[str]:
    """Lay into ``tree/lib`` what the interpreter's files need, and let them look there.

    Wheels bring their own libraries and are left as they are.

    Args:
        tree: With ``bin`` and ``lib``, before any wheel is installed.
        patchelf: The program of that name.

    Returns:
        Names of the libraries that were laid in.

    Raises:
        DeployError: One is missing on this machine.
    """
    folder = tree / "lib"
    files = list(elf_files(tree))
    libraries = _closure(files, {file.name for file in files})
    for name, source in libraries.items():
        shutil.copy2(source, folder / name)
        (folder / name).chmod(0o644)
        files.append(folder / name)
    for file in files:
        if _needs(file):
            origin = f"$ORIGIN/{os.path.relpath(folder, file.parent)}"
            _run([str(patchelf), "--set-rpath", origin, str(file)])
    return sorted(libraries)


def least_glibc(tree: Path) -> str:
    """The glibc that all programs and libraries below ``tree`` need, such as ``2.34``."""
    wanted = {(2, 17)}
    for file in elf_files(tree):
        told = _run(["objdump", "-T", str(file)])
        wanted |= {(int(major), int(minor)) for major, minor in _WANTED_GLIBC.findall(told)}
    return ".".join(map(str, max(wanted)))


def elf_files(tree: Path) -> Iterator[Path]:
    """Programs and shared libraries below a folder."""
    for file in sorted(tree.rglob("*")):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as opened:
                if opened.read(4) == _ELF:
                    yield file


def _closure(files: Iterable[Path], present: set[str]) -> dict[str, Path]:
    """By name, all that files need and nobody has, also what that needs itself."""
    found: dict[str, Path] = {}
    for file in files:
        for name, path in _needs(file).items():
            if name in present or _HOST_S.fullmatch(name):
                continue
            if path is None:
                raise DeployError(f"{file.name} needs {name}, which is not on this machine")
            found[name] = path
    return found


def _needs(file: Path) -> dict[str, Path | None]:
    """What the loader finds for a file, with all that those need; empty for a static one."""
    ran = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False)
    return {
        name: None if path == "not found" else Path(path).resolve()
        for name, path in _LINE.findall(ran.stdout)
        if not name.startswith("/")
    }


def _run(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError as error:
        raise DeployError(f"{command[0]} is missing: install it") from error
    except subprocess.CalledProcessError as error:
        raise DeployError(f"{' '.join(command)}: {error.stderr.strip()}") from error
