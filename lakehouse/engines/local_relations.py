"""Relations of the local engine: DuckDB's SELECTs over files of Delta tables, and Arrow.

Undeclared columns of a table and of its files are never read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from lakehouse.core import table_faults
from lakehouse.core.delta_rs import url_of
from lakehouse.core.periods import FIRST, HOUR_US, LAST, Period, micros
from lakehouse.engines.delta_tables import File
from lakehouse.engines.engine import instant_of
from lakehouse.engines.relation import Relation, Rows, relation, select, source
from lakehouse.errors import EngineError, LakehouseError, LogExpiredError, one_line
from lakehouse.kernel import run_in_duckdb
from lakehouse.kernel.build_program import duckdb_type
from lakehouse.tables.table import Column, Table, delta_type, identifier, standard_text

_INSTANT: Final = "TIMESTAMPTZ"
_CHANGE: Final = "_change_type"
_WRITTEN: Final = Column("written", "bigint", "modification time of the row's file")
_HUGE: Final = pa.decimal128(38, 0)


class Duck:
    """DuckDB for the relations of one lake.

    Args:
        root: Root of the lake, for errors.
        folders: Folders from which it can read files.
        spill: Folder for rows that exceed its memory.
        threads: Number of threads.
    """

    def __init__(self, root: str, folders: Sequence[str], spill: Path, threads: int) -> None:
        self._root = root
        self._duck = run_in_duckdb.connect(folders, str(spill), memory_limit="1GB", threads=threads)

    def collect(self, rows: Rows) -> pa.Table:
        """Return the rows of a relation as a table in memory."""
        with self.result(rows) as result:
            found = result.to_arrow_table()
        # DuckDB's sums of BIGINT are wider than Spark's.
        fields = (f.with_type(pa.int64()) if f.type == _HUGE else f for f in found.schema)
        return found.cast(pa.schema(fields))

    @contextmanager
    def result(self, rows: Rows) -> Iterator[duckdb.DuckDBPyRelation]:
        """Run a relation on a cursor of its own, within the context.

        Raises:
            LogExpiredError: A change feed could not be read.
            EngineError: Any other error of DuckDB.
        """
        duck, chosen = self._duck.cursor(), relation(rows)

        def written(name: str, rows: Any) -> str:
            if isinstance(rows, str):
                return f"({rows})"
            duck.register(name, rows)
            return name

        try:
            yield duck.sql(_only_query(duck, chosen.rendered(written)))
        except duckdb.Error as error:
            if any(isinstance(rows, Feed) for rows in chosen.sources.values()):
                raise self.expired(error) from error
            raise EngineError(f"{self._root}: DuckDB: {one_line(error)}") from error
        finally:
            duck.close()

    def expired(self, error: Exception) -> LakehouseError:
        """Return the error for a change feed that could not be read."""
        return LogExpiredError(
            f"{self._root}: delta-rs cannot read the commits to bronze since the last rollup "
            f"({one_line(error)})"
        )


def _only_query(duck: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the statement of a text.

    Raises:
        duckdb.Error: The text is not one SELECT.
    """
    statements = duck.extract_statements(sql)
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        raise duckdb.InvalidInputException(f"{len(statements)} statements, not one SELECT")
    return statements[0]


class Packed:
    """Rows of a table of gold in packets, unpacked again for each stream.

    Args:
        packets: Arrow streams with the same schema.
    """

    def __init__(self, packets: Sequence[pa.Buffer]) -> None:
        self._packets = packets

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a stream from the first row."""
        opened = map(pa.ipc.open_stream, self._packets)
        schema = pa.ipc.open_stream(self._packets[0]).schema
        rows = pa.RecordBatchReader.from_batches(schema, chain.from_iterable(opened))
        return rows.__arrow_c_stream__(requested_schema)


def of_parquet(places: Iterable[str], types: Mapping[str, str]) -> str:
    """Return a SELECT of columns of local Parquet files. A missing column is null.

    Args:
        places: Paths of the files.
        types: Column types, as Spark writes them, by name.
    """
    listed = ", ".join(map(standard_text, places))
    # With a schema DuckDB reads only these columns, and file_index is its own column.
    schema = ", ".join(
        f"{standard_text(name)}: {{name: {standard_text(name)}, "
        f"type: {standard_text(duckdb_type(kind, _INSTANT))}, default_value: NULL}}"
        for name, kind in types.items()
    )
    return f"FROM read_parquet([{listed}], schema=MAP {{{schema}}}, hive_partitioning=false)"


def of_files(table: Table, delta: DeltaTable, files: Sequence[File], between: Period | None) -> str:
    """Return a SELECT of a table's rows in some of its files, with the columns of a relation.

    Args:
        table: Declaration of the table.
        delta: The table.
        files: Files to read.
        between: Period of the rows. None means all rows.

    Raises:
        TableSchemaError: The type of a column differs from its declaration.
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
    # Spark can also write partition columns into the file.
    own = {name: kind for name, kind in types.items() if name not in of_file}
    raw = _no_rows(types)
    if files:
        keys = (f", {_of_its_file(values, types[key], key)}" for key, values in of_file.items())
        raw = f"{of_parquet((file.place for file in files), own)} SELECT *{''.join(keys)}"
    return f"FROM ({raw}) AS raw SELECT {_selected(types)}{_within(types, between)}"


def _of_its_file(values: Iterable[str | None], kind: str, name: str) -> str:
    """Return a column that has one value per file."""
    literals = ", ".join("NULL" if one is None else standard_text(one) for one in values)
    whole = f"CAST([{literals}] AS {duckdb_type(kind, _INSTANT)}[])"
    return f"{whole}[file_index::BIGINT + 1] AS {identifier(name)}"


def _no_rows(types: Mapping[str, str]) -> str:
    nulls = (
        f"NULL::{duckdb_type(kind, _INSTANT)} AS {identifier(name)}" for name, kind in types.items()
    )
    return f"SELECT {', '.join(nulls)} WHERE false"


def _declared_types(table: Table, delta: DeltaTable) -> dict[str, str]:
    declared = table_faults.declared(table, columns(delta), url_of(delta))
    return {column.name: column.type for column in declared}


class Feed:
    """Change feed of a table's declared columns, read again for each stream.

    Args:
        table: Declaration of the table.
        delta: The table.
        versions: Versions to read.

    Raises:
        TableSchemaError: The type of a column differs from its declaration.
    """

    def __init__(self, table: Table, delta: DeltaTable, versions: range) -> None:
        self._delta, self._versions = delta, versions
        self.types = _declared_types(table, delta)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a stream from the first row."""
        # delta-rs writes these names into SQL.
        chosen = [identifier(name) for name in (*self.types, _CHANGE)]
        feed = self._delta.load_cdf(self._versions[0], self._versions[-1], columns=chosen)
        return feed.__arrow_c_stream__(requested_schema)


def of_feed(feed: Feed) -> Relation:
    """Return the inserted rows of a change feed, with the columns of a relation."""
    inserted = f"FROM {{feed}} AS raw SELECT {_selected(feed.types)} WHERE {_CHANGE} = 'insert'"
    return select(inserted, feed=source(feed))


def columns(delta: DeltaTable) -> dict[str, str]:
    """Return the column types of a table, as Spark writes them, by name."""
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
    """Return the condition for a period, on stored columns, so that row groups are skipped."""
    if between is None:
        return ""
    ends = (between.start, between.end)
    first, end = (f"TIMESTAMPTZ '{one:%Y-%m-%d %H:%M:%S.%f}+00'" for one in ends)
    by = f"raw.{identifier(instant_of(types))}"
    dated = (
        f" AND raw.date BETWEEN DATE '{between.start:%Y-%m-%d}' AND DATE '{between.end:%Y-%m-%d}'"
    )
    return f" WHERE {by} >= {first} AND {by} < {end}" + dated * ("date" in types)
