"""Sources of the local engine's relations: SELECTs of DuckDB over files of Delta tables, and Arrow.

Columns of a table, and of its files, that its declaration does not have are never read.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse.core import display, older_gold
from lakehouse.core.delta_rs import url_of
from lakehouse.core.periods import FIRST, HOUR_US, LAST, Period, micros
from lakehouse.engines.delta_tables import File
from lakehouse.engines.engine import instant_of
from lakehouse.engines.relation import Relation, select, source
from lakehouse.errors import TableSchemaError
from lakehouse.tables.table import Column, Table, delta_type, identifier, standard_text

_TYPES: Final = {
    "string": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE",
    "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMPTZ",
    "struct<user:string,client_id:string>": 'STRUCT("user" VARCHAR, client_id VARCHAR)',
}  # fmt: skip
_CHANGE: Final = "_change_type"
_WRITTEN: Final = Column("written", "bigint", "when the row's file was last modified")


class Packed:
    """Rows of a table of gold in packets, unpacked again for each stream.

    Args:
        packets: Streams of Arrow, with the same schema.
    """

    def __init__(self, packets: Sequence[pa.Buffer]) -> None:
        self._packets = packets

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The stream, from its start."""
        opened = map(pa.ipc.open_stream, self._packets)
        schema = pa.ipc.open_stream(self._packets[0]).schema
        rows = pa.RecordBatchReader.from_batches(schema, chain.from_iterable(opened))
        return rows.__arrow_c_stream__(requested_schema)


def of_parquet(places: Iterable[str], types: Mapping[str, str]) -> str:
    """A SELECT of columns of Parquet files on this machine, null where a file lacks them.

    Args:
        places: Paths of the files.
        types: Types of the columns, as Spark writes types, by name.
    """
    listed = ", ".join(map(standard_text, places))
    # With a schema DuckDB reads no other column of a file, and what it calls file_index is its own.
    schema = ", ".join(
        f"{standard_text(name)}: {{name: {standard_text(name)}, "
        f"type: {standard_text(_duckdb_type(kind))}, default_value: NULL}}"
        for name, kind in types.items()
    )
    return f"FROM read_parquet([{listed}], schema=MAP {{{schema}}}, hive_partitioning=false)"


def of_files(table: Table, delta: DeltaTable, files: Sequence[File], between: Period | None) -> str:
    """A SELECT of the rows of a table that are in some of its files, as relations have them.

    Args:
        table: The table's declaration.
        delta: The table.
        files: The files.
        between: Only rows that lie in it.

    Raises:
        TableSchemaError: A column has another type than the declared one.
    """
    types = _declared_types(table, delta)
    of_file = {
        key: [file.keys[at] for file in files]
        for at, key in enumerate(delta.metadata().partition_columns)
        if key in types
    }
    if "start" in types and "date" in types:
        types[_WRITTEN.name] = _WRITTEN.type
        of_file[_WRITTEN.name] = [str(file.written) for file in files]
    # Spark may write the columns of partitions into the file as well.
    own = {name: kind for name, kind in types.items() if name not in of_file}
    raw = _no_rows(types)
    if files:
        keys = (f", {_of_its_file(values, types[key], key)}" for key, values in of_file.items())
        raw = f"{of_parquet((file.place for file in files), own)} SELECT *{''.join(keys)}"
    return f"FROM ({raw}) AS raw SELECT {_selected(types)}{_within(types, between)}"


def _of_its_file(values: Iterable[str | None], kind: str, name: str) -> str:
    """A column that has one value in each file."""
    literals = ", ".join("NULL" if one is None else standard_text(one) for one in values)
    whole = f"CAST([{literals}] AS {_duckdb_type(kind)}[])"
    return f"{whole}[file_index::BIGINT + 1] AS {identifier(name)}"


def _no_rows(types: Mapping[str, str]) -> str:
    nulls = (f"NULL::{_duckdb_type(kind)} AS {identifier(name)}" for name, kind in types.items())
    return f"SELECT {', '.join(nulls)} WHERE false"


def _declared_types(table: Table, delta: DeltaTable) -> dict[str, str]:
    """Types of the declared columns that a table has.

    Raises:
        TableSchemaError: One has another type than the declared one.
    """
    found = columns(delta)
    older_gold.check(table, found, url_of(delta))
    if wrong := table.wrong_types(found):
        raise TableSchemaError(
            f"{url_of(delta)}: {display.line('; '.join(wrong))}; another version of jmxlake made "
            "it, or it is no table of jmxlake"
        )
    return {column.name: column.type for column in table.declared(found)}


def _duckdb_type(kind: str) -> str:
    """A type of DuckDB's, of one that is written as Spark writes it."""
    if kind.startswith("array<"):
        return f"{_duckdb_type(kind[6:-1])}[]"
    if kind.startswith("map<string,"):
        return f"MAP(VARCHAR, {_duckdb_type(kind[11:-1])})"
    return _TYPES[kind]


class Feed:
    """A table's change feed of its declared columns, read again for each stream.

    Args:
        table: The table's declaration.
        delta: The table.
        first: The first version.
        last: The last one.

    Raises:
        TableSchemaError: A column has another type than the declared one.
    """

    def __init__(self, table: Table, delta: DeltaTable, first: int, last: int) -> None:
        self._delta, self._first, self._last = delta, first, last
        self.types = _declared_types(table, delta)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The stream, from its start."""
        # delta-rs makes SQL of these names.
        chosen = [identifier(name) for name in (*self.types, _CHANGE)]
        feed = self._delta.load_cdf(self._first, self._last, columns=chosen)
        return feed.__arrow_c_stream__(requested_schema)


def of_feed(feed: Feed) -> Relation:
    """The rows that a change feed says were inserted, as relations have them."""
    inserted = f"FROM {{feed}} AS raw SELECT {_selected(feed.types)} WHERE {_CHANGE} = 'insert'"
    return select(inserted, feed=source(feed))


def columns(delta: DeltaTable) -> dict[str, str]:
    """Names and types of a table's columns, as Spark writes types."""
    return {one.name: delta_type(one.type) for one in delta.schema().fields}


def _selected(types: Mapping[str, str]) -> str:
    chosen = [_shown(name, kind) for name, kind in types.items()]
    by = instant_of(types)
    if by:
        latest = micros(LAST) // HOUR_US
        hour = f"greatest(0, least(epoch_us(raw.{identifier(by)}) // {HOUR_US}, {latest}))"
        chosen.append(f"CASE WHEN raw.{identifier(by)} IS NOT NULL THEN {hour} END AS epoch_hour")
    if by == "start" and "date" in types:
        us = 'epoch_us(raw."start")'
        inside = f"{us} BETWEEN {micros(FIRST)} AND {micros(LAST)}"
        same = f"raw.date - DATE '1970-01-01' = {us} // {24 * HOUR_US}"
        chosen.append(f"NOT coalesce({inside} AND {same}, false) AS misdated")
    return ", ".join(chosen)


def _shown(name: str, kind: str) -> str:
    column = f"raw.{identifier(name)}"
    match kind:
        case "timestamp":
            return f"epoch_us({column}) AS {identifier(name)}"
        case "map<string,timestamp>":
            values = f"list_transform(map_values({column}), lambda t: epoch_us(t))"
            return f"MAP(map_keys({column}), {values}) AS {identifier(name)}"
    return column


def _within(types: Mapping[str, str], between: Period | None) -> str:
    """On the columns as they are stored: so row groups can be left out."""
    if between is None:
        return ""
    ends = (between.start, between.end)
    first, end = (f"TIMESTAMPTZ '{one:%Y-%m-%d %H:%M:%S.%f}+00'" for one in ends)
    by = f"raw.{identifier(instant_of(types))}"
    dated = (
        f" AND raw.date BETWEEN DATE '{between.start:%Y-%m-%d}' AND DATE '{between.end:%Y-%m-%d}'"
    )
    return f" WHERE {by} >= {first} AND {by} < {end}" + dated * ("date" in types)
