"""Conversion of rows to Arrow with arro3, because pyarrow is too large for a broker host.

arro3 creates arrays of Python numbers and strings. This module builds the other types of
lakehouse.tables from them: instants and dates with a cast, lists and structs with offsets and
masks, maps as a list of key and value, which is Arrow's layout.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from arro3.core import Array, DataType, Field, Schema, Table, list_array, struct_array

from lakehouse import tables

_PLAIN: Final = {
    "string": DataType.utf8(), "int": DataType.int32(), "bigint": DataType.int64(),
    "double": DataType.float64(), "date": DataType.date32(),
    "timestamp": DataType.timestamp("us", tz="UTC"),
}  # fmt: skip
_PAIR: Final = [Field("key", DataType.utf8(), nullable=False), Field("value", DataType.utf8())]
_STRUCT: Final = re.compile(r"(\w+):(\w+)")


def schema(table: tables.Table) -> Schema:
    """Return the Arrow schema for creating a table, with the comments of its columns."""
    return Schema([_field(one).with_metadata({"comment": one.comment}) for one in table.columns])


def to_arrow(table: tables.Table, rows: Sequence[Sequence[Any]]) -> Table:
    """Convert rows to Arrow.

    Args:
        table: Declaration of the table.
        rows: Values in the order of the table's columns. Instants are microseconds, dates are days,
            maps are pairs, structs are tuples in the order of their fields.

    Raises:
        ValueError: A required value is missing. Wrong values raise the exceptions of arro3.
    """
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    arrays: list[Array] = []
    for column, values in zip(table.columns, columns, strict=True):
        arrays.append(_array(_type(column.type), values))
        if arrays[-1].null_count and not column.nullable:
            raise ValueError(f"{table.name}.{column.name} must not be null")
    return Table.from_arrays(arrays, schema=Schema([_field(one) for one in table.columns]))


def _field(column: tables.Column) -> Field:
    """Return the field of a column without its comment, which each file would repeat."""
    return Field(column.name, _type(column.type), nullable=column.nullable)


def _type(name: str) -> DataType:
    if name in _PLAIN:
        return _PLAIN[name]
    kind, inner = name.split("<", 1)
    inner = inner.removesuffix(">")
    if kind == "array":
        return DataType.list(Field("element", _type(inner), nullable=True))
    if kind == "struct":
        fields = _STRUCT.findall(inner)
        return DataType.struct([Field(key, _type(type_), nullable=True) for key, type_ in fields])
    return DataType.map(_PAIR[0], _PAIR[1], keys_sorted=False)


def _array(type_: DataType, values: Sequence[Any]) -> Array:
    if (inner := type_.value_type) is not None:
        return _list(values, _array(inner, _flat(values)), type_)
    if (fields := type_.fields) is not None:
        return _structs(fields, values)
    if DataType.is_map(type_):
        _, layout = _list(values, _structs(_PAIR, _flat(values)), None).__arrow_c_array__()
        return Array.from_arrow_pycapsule(type_.__arrow_c_schema__(), layout)
    stored = type_
    if DataType.is_date32(type_) or DataType.is_timestamp(type_):
        stored = DataType.int32() if DataType.is_date32(type_) else DataType.int64()
    return Array(values, stored).cast(type_)


def _structs(fields: Sequence[Field], values: Sequence[Any]) -> Array:
    children = [
        _array(field.type, [value[index] for value in values]) for index, field in enumerate(fields)
    ]
    return struct_array(children, fields=fields)


def _list(values: Sequence[Any], items: Array, type_: DataType | None) -> Array:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value or ()))
    mask = Array([value is None for value in values], DataType.bool())
    kind = Field("list", type_) if type_ else None
    return list_array(Array(offsets, DataType.int32()), items, type=kind, mask=mask)


def _flat(values: Sequence[Any]) -> list[Any]:
    return [item for value in values if value is not None for item in value]
