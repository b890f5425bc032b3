"""Sizes of a Delta table on a local disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import duckdb

if TYPE_CHECKING:
    from deltalake import DeltaTable


class Size(NamedTuple):
    """Live data files, their rows and bytes."""

    files: list[str]
    rows: int
    bytes: int


def sizes(delta: DeltaTable) -> Size:
    """What is live in the version that was loaded; removed files do not count."""
    files = [uri.removeprefix("file://") for uri in delta.file_uris()]
    if not files:
        return Size([], 0, 0)
    counted = duckdb.execute("SELECT count(*) FROM read_parquet(?)", [files]).fetchone()
    rows = int(counted[0]) if counted else 0
    return Size(files, rows, sum(Path(file).stat().st_size for file in files))


def log_bytes(table: Path) -> int:
    """The table's log."""
    return sum(file.stat().st_size for file in (table / "_delta_log").rglob("*") if file.is_file())
