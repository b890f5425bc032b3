"""Rows as one Parquet file, written by delta-rs's own engine as it reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakehouse import query

if TYPE_CHECKING:
    from pathlib import Path

    from deltalake import DeltaTable

# Without Arrow's own schema in it, any reader goes by Parquet's types.
_OPTIONS: Final = "('format.compression' 'zstd(9)', 'format.skip_arrow_metadata' 'true')"


def write(delta: DeltaTable, sql: str, file: Path, where: str) -> int:
    """Write the rows of a query.

    Args:
        delta: What is asked.
        sql: As ``query.rows`` takes it.
        file: To be made; its name ends with ``.parquet``. Without rows it is not.
        where: Where the table lies, for errors.

    Returns:
        How many rows these are.

    Raises:
        MaintenanceError: The table could not be read, or the file not be written.
    """
    # As a URL: in a path the engine would take some characters for a pattern.
    target = query.quoted(file.resolve().as_uri())
    copy = f"COPY ({sql}) TO {target} STORED AS PARQUET OPTIONS {_OPTIONS}"
    (row,) = query.rows(delta, copy, where)
    return int(row["count"])
