"""Gold made by hand, as the rollup leaves it, for tests that need no Spark.

That delta-rs reads what Spark really wrote is tested in tests/everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from lakehouse import tables

if TYPE_CHECKING:
    import datetime as dt
    from pathlib import Path

    from lakehouse.tables import Table

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
    "map<string,timestamp>": pa.map_(pa.string(), pa.timestamp("us", "UTC")),
}


def put(
    lake: Path | str, table: Table, *rows: dict[str, Any], options: dict[str, str] | None = None
) -> DeltaTable:
    """Append rows to a table of gold; it is made where it is missing.

    What a row lacks is null. Rows may give ``window_start`` for an hour, too; it gives the date.
    """
    arrow = schema(table)
    delta = DeltaTable.create(
        f"{lake}/{table.path}", schema=arrow, mode="ignore", description=table.comment,
        partition_by=list(table.partition_by), configuration=table.properties,
        storage_options=options,
    )  # fmt: skip
    if rows:
        dated = [_dated(table, row) if table.start else row for row in rows]
        whole = [dict.fromkeys(table.column_names) | row for row in dated]
        assert not {*whole[0]} - {*table.column_names}, f"not columns of {table.name}"
        assert len({len(row) for row in whole}) == 1, f"not columns of {table.name}"
        write_deltalake(delta, pa.Table.from_pylist(whole, arrow), mode="append")
    return delta


def schema(table: Table) -> pa.Schema:
    """The columns of a table of gold."""
    return pa.schema([pa.field(one.name, _TYPES[one.type], one.nullable) for one in table.columns])


def progress(lake: Path | str, at: dt.datetime) -> DeltaTable:
    """A row of gold/progress, as a first rollup leaves it."""
    versions = dict.fromkeys(("runs_version", "scrapes_version", "members_version", "hours"), 0)
    row = {**versions, "finished_at": at, "committed_at": at, "window_seconds": 300, "how": "whole"}
    return put(lake, tables.PROGRESS, {**row, "runs_id": "x"})


def _dated(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    own = {table.start if name == "window_start" else name: value for name, value in row.items()}
    return {"date": own[table.start].date(), **own}
