"""The tarball: the same bytes for the same tree, owned by root."""

from __future__ import annotations

import gzip
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


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
