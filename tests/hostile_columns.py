"""Names of columns that no declaration has, and that would run as SQL, or hide another column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.tables import Table

WRITTEN: Final = "sql-ran.txt"
"""The file that SQL in a name writes, into the working directory."""

_COPY: Final = f"COPY (SELECT 'x') TO '{WRITTEN}' (FORMAT csv)"

NAMES: Final = (
    f'rack") r; {_COPY}; SELECT * FROM (SELECT 1 AS first_seen, 2 AS last_seen, 1 AS "y',  # noqa: S608 - it is hostile
    f'x" FROM raw); {_COPY}; SELECT ("',
    f"'; {_COPY}; --",
    f"`; {_COPY}; --",
    "x` FROM range(1) WHERE assert_true(false) IS NULL --",
    'quote"',
    "back`tick",
    "it's",
    "semi;colon",
    "-- comment",
    "/* comment",
    "new\nline\ttab",
    "bell\x07escape\x1b[31m",
    "\u202eright to left",
    "{rows}",
    "{rows} {windows} {",
    "%s $1 ? :name",
    "__proto__",
    "a.b",
    "a,b=c",
    "",
    " ",
    "\\",
    "*",
    "x" * 4000,
    "_metadata",
    "_Change_Type",
    "file_index",
    "filename",
    "epoch_hour",
    "misdated",
    "written",
    "raw",
)
"""Names that delta-rs lets anybody add to a table."""

RESERVED: Final = ("_change_type", "_commit_version", "_commit_timestamp")
"""Names of columns of a change feed, which cannot be read where a table has one."""


def add(root: Path, table: Table, *names: str) -> None:
    """Add columns to a table of a lake, as anybody may who can write to it."""
    fields = [Field(name, PrimitiveType("string"), nullable=True) for name in names]
    DeltaTable(f"{root}/{table.path}").alter.add_columns(fields)
