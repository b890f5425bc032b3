"""The tarball: the same bytes for the same tree, owned by root."""

from __future__ import annotations

import gzip
import subprocess
import tarfile
from pathlib import Path
from typing import Final

_ONE_FOR_ALL: Final = 1_700_000_000  # no commit to take a time from


def pack(tree: Path, file: Path, when: int) -> None:
    """Write ``file``, whose one folder is named as ``tree`` is.

    Args:
        tree: What to pack.
        file: Ends in ``.tar.gz``.
        when: Time of all that is in it, seconds since 1970.
    """

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = when
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with (
        file.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=when) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        archive.add(tree, arcname=tree.name, recursive=False, filter=plain)
        for path in sorted(tree.rglob("*")):
            archive.add(path, arcname=f"{tree.name}/{path.relative_to(tree)}", recursive=False,
                        filter=plain)  # fmt: skip


def commit_time() -> int:
    """Of the commit that is built, seconds since 1970, so that a second build is the same."""
    command = ["git", "-C", str(Path(__file__).parent), "log", "-1", "--format=%ct"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return _ONE_FOR_ALL
    return int(ran.stdout) if ran.returncode == 0 and ran.stdout.strip() else _ONE_FOR_ALL
