"""Archives that have the same bytes for the same tree and belong to root."""

from __future__ import annotations

import gzip
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Final

_ONE_FOR_ALL: Final = 1_700_000_000  # there is no commit to take a time from


def settle(tree: Path, when: int) -> None:
    """Set modes and times of a folder and its files, independent of the build host."""
    for path in (tree, *tree.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (when, when))


def pack(tree: Path, file: Path, when: int, name: str = "") -> None:
    """Write an archive with one folder.

    Args:
        tree: Folder to pack; :func:`settle` it first.
        file: Archive, which ends in ``.tar.gz``.
        when: Time of the archive, seconds since 1970.
        name: Name of the folder in the archive. Default: the name of ``tree``.
    """

    def of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = int(entry.mtime)  # a float would need a second header for each file
        return entry

    with (
        file.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=when) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        archive.add(tree, arcname=name or tree.name, filter=of_root)


def commit_time() -> int:
    """Return the time of the commit, seconds since 1970, so that a second build is the same."""
    command = ["git", "-C", str(Path(__file__).parent), "log", "-1", "--format=%ct"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return _ONE_FOR_ALL
    return int(ran.stdout) if ran.returncode == 0 and ran.stdout.strip() else _ONE_FOR_ALL
