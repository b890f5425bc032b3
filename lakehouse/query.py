"""Rows of a Delta table by SQL, through delta-rs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from deltalake import QueryBuilder

from lakehouse.maintain.place import explained

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalake import DeltaTable

TABLE: Final = "asked"
"""The name of the table in the SQL."""

Row = dict[str, Any]


def rows(delta: DeltaTable, sql: str, where: str) -> Iterator[Row]:
    """The rows of a query, as they come.

    Args:
        delta: What is asked.
        sql: In DataFusion's dialect, of ``TABLE``; no text from outside stands in it unquoted.
        where: Where the table lies, for errors.

    Raises:
        MaintenanceError: It could not be read.
    """
    with explained(where):
        for batch in QueryBuilder().register(TABLE, delta).execute(sql):
            names = batch.schema.names
            columns = [batch.column(name).to_pylist() for name in names]
            for values in zip(*columns, strict=True):
                yield dict(zip(names, values, strict=True))


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
