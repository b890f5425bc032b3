"""Relations of the local engine: queries of DuckDB over files of Delta tables and over Arrow."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from lakehouse.core.periods import FIRST, HOUR_US, LAST, Period, micros
from lakehouse.engines.delta_tables import File
from lakehouse.engines.engine import instant_of
from lakehouse.engines.replace_where import strings
from lakehouse.tables.table import delta_type, standard_text

_NAMED: Final = re.compile(r"\{(\w+)\}")
_NUMBERS: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows as a query of DuckDB.

    Attributes:
        sql: The query.
        sources: The sources that it names: tables and streams of Arrow.
    """

    sql: str
    sources: Mapping[str, Any] = field(default_factory=dict)


def given(rows: pa.Table) -> Relation:
    """Rows that are in memory."""
    name = _name()
    return Relation(f"FROM {name}", {name: rows})


def of_parquet(places: Sequence[str], names: Sequence[str]) -> Relation:
    """Some columns of Parquet files on this machine."""
    columns = ", ".join(f'"{name}"' for name in names)
    return Relation(f"{_parquet(places)} SELECT {columns}")


def _parquet(places: Iterable[str]) -> str:
    listed = ", ".join(map(standard_text, places))
    return f"FROM read_parquet([{listed}], union_by_name=true, hive_partitioning=false)"


def queried(sql: str, relations: Mapping[str, Relation]) -> Relation:
    """A query of relations, which it names in braces."""
    text = _NAMED.sub(
        lambda found: f"({relations[found[1]].sql})" if found[1] in relations else found[0], sql
    )
    sources = {name: one for each in relations.values() for name, one in each.sources.items()}
    return Relation(text, sources)


def of_files(delta: DeltaTable, files: Sequence[File], between: Period | None) -> Relation:
    """The rows of a table that are in some of its files, as relations have them.

    Args:
        delta: The table.
        files: The files.
        between: Only rows that lie in it.
    """
    types, name = columns(delta), _name()
    shape = pa.schema(delta.schema().to_arrow())
    if "start" in types and "date" in types:
        types["written"], shape = "bigint", shape.append(pa.field("written", pa.int64()))
    # An empty table of all columns stands in for those that no file has yet.
    raw = f"FROM {name}"
    if files:
        of_file = {
            key: [_literal(file.keys[at], types[key]) for file in files]
            for at, key in enumerate(delta.metadata().partition_columns)
        }
        if "written" in types:
            of_file["written"] = [str(file.written) for file in files]
        keys = (
            f', [{", ".join(values)}][file_index::BIGINT + 1] AS "{key}"'
            for key, values in of_file.items()
        )
        # Spark may write these columns into the file as well.
        own = f"COLUMNS(lambda name: name NOT IN {strings(of_file)})" if of_file else "*"
        found = _parquet(file.place for file in files)
        raw += f" UNION ALL BY NAME {found} SELECT {own}{''.join(keys)}"
    sql = f"FROM ({raw}) AS raw SELECT {_selected(types)}{_within(types, between)}"
    return Relation(sql, {name: shape.empty_table()})


class Feed:
    """A table's change feed, read again for each stream."""

    def __init__(self, delta: DeltaTable, first: int, last: int) -> None:
        self._delta, self._first, self._last = delta, first, last

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The stream, from its start."""
        return self._delta.load_cdf(self._first, self._last).__arrow_c_stream__(requested_schema)


def of_feed(delta: DeltaTable, feed: Feed) -> Relation:
    """The rows that a change feed says were inserted, as relations have them."""
    name = _name()
    inserted = f"FROM {name} AS raw SELECT {_selected(columns(delta))}"
    return Relation(f"{inserted} WHERE _change_type = 'insert'", {name: feed})


def columns(delta: DeltaTable) -> dict[str, str]:
    """Names and types of a table's columns, as Spark writes types."""
    return {one.name: delta_type(one.type) for one in delta.schema().fields}


def _name() -> str:
    return f"source_{next(_NUMBERS)}"


def _selected(types: Mapping[str, str]) -> str:
    chosen = [_shown(name, kind) for name, kind in types.items()]
    by = instant_of(types)
    if by:
        latest = micros(LAST) // HOUR_US
        hour = f'greatest(0, least(epoch_us(raw."{by}") // {HOUR_US}, {latest}))'
        chosen.append(f'CASE WHEN raw."{by}" IS NOT NULL THEN {hour} END AS hour')
    if by == "start" and "date" in types:
        us = 'epoch_us(raw."start")'
        inside = f"{us} BETWEEN {micros(FIRST)} AND {micros(LAST)}"
        same = f"raw.date - DATE '1970-01-01' = {us} // {24 * HOUR_US}"
        chosen.append(f"NOT coalesce({inside} AND {same}, false) AS misdated")
    return ", ".join(chosen)


def _shown(name: str, kind: str) -> str:
    column = f'raw."{name}"'
    match kind:
        case "timestamp":
            return f'epoch_us({column}) AS "{name}"'
        case "map<string,timestamp>":
            values = f"list_transform(map_values({column}), lambda t: epoch_us(t))"
            return f'MAP(map_keys({column}), {values}) AS "{name}"'
    return column


def _within(types: Mapping[str, str], between: Period | None) -> str:
    """On the columns as they are stored: so row groups can be left out."""
    if between is None:
        return ""
    ends = (between.start, between.end)
    first, end = (f"TIMESTAMPTZ '{one:%Y-%m-%d %H:%M:%S.%f}+00'" for one in ends)
    by = f'raw."{instant_of(types)}"'
    dated = (
        f" AND raw.date BETWEEN DATE '{between.start:%Y-%m-%d}' AND DATE '{between.end:%Y-%m-%d}'"
    )
    return f" WHERE {by} >= {first} AND {by} < {end}" + dated * ("date" in types)


def _literal(value: str | None, kind: str) -> str:
    if value is None:
        return "NULL"
    return f"DATE {standard_text(value)}" if kind == "date" else standard_text(value)
