"""Arrow's types of a table's rows as relations have them: instants are microseconds."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from lakehouse.tables import Table

_TYPES: Final = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.int64(),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
    "array<struct<user:string,client_id:string>>": pa.list_(
        pa.struct([("user", pa.string()), ("client_id", pa.string())])
    ),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
    "map<string,bigint>": pa.map_(pa.string(), pa.int64()),
    "map<string,timestamp>": pa.map_(pa.string(), pa.int64()),
}


def schema(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """The schema of columns that are given by name and type, as Spark writes types."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in columns])


def of_table(table: Table) -> pa.Schema:
    """The schema of a table's rows."""
    return schema((column.name, column.type) for column in table.columns)


def rows(shape: pa.Schema, values: Sequence[Sequence[Any]]) -> pa.Table:
    """Some rows of plain values."""
    named = [dict(zip(shape.names, row, strict=True)) for row in values]
    return pa.Table.from_pylist(named, shape)
