"""Gold made by hand, as the rollup leaves it, for tests that need no Spark.

That delta-rs reads what Spark really wrote is tested in tests/everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

if TYPE_CHECKING:
    from pathlib import Path

    from lakehouse.tables import Table

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
}


def put(
    lake: Path | str, table: Table, *rows: dict[str, Any], options: dict[str, str] | None = None
) -> DeltaTable:
    """Append rows to a table of gold; it is made where it is missing. What a row lacks is null."""
    schema = pa.schema(
        [pa.field(one.name, _TYPES[one.type], one.nullable) for one in table.columns]
    )
    delta = DeltaTable.create(
        f"{lake}/{table.path}", schema=schema, mode="ignore", description=table.comment,
        partition_by=list(table.partition_by), configuration=table.properties,
        storage_options=options,
    )  # fmt: skip
    if rows:
        whole = [{one: row.get(one) for one in table.column_names} for row in rows]
        write_deltalake(delta, pa.Table.from_pylist(whole, schema), mode="append")
    return delta
