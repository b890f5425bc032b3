"""Arrow types of the rows of tables. Instants are microseconds."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from lakehouse.tables import Table

_PLAIN: Final = {
    "string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(),
    "boolean": pa.bool_(), "date": pa.date32(),
    "struct<user:string,client_id:string>": pa.struct(
        [("user", pa.string()), ("client_id", pa.string())]
    ),
}  # fmt: skip


def of(kind: str, instant: pa.DataType = _PLAIN["bigint"]) -> pa.DataType:
    """Return the Arrow type of a type in Spark's notation."""
    if kind.startswith("array<"):
        return pa.list_(of(kind[6:-1], instant))
    if kind.startswith("map<string,"):
        return pa.map_(pa.string(), of(kind[11:-1], instant))
    return instant if kind == "timestamp" else _PLAIN[kind]


def schema(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """Return the schema of columns with a name and a type in Spark's notation."""
    return pa.schema([(name, of(kind)) for name, kind in columns])


def of_table(table: Table) -> pa.Schema:
    """Return the schema of a table."""
    return schema((column.name, column.type) for column in table.columns)


def rows(shape: pa.Schema, values: Iterable[Sequence[Any]]) -> pa.Table:
    """Return rows of plain values as a table."""
    named = [dict(zip(shape.names, row, strict=True)) for row in values]
    return pa.Table.from_pylist(named, shape)
