"""The SQL views of a lake in DuckDB, and what is asked of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import duckdb
from click.testing import CliRunner
from deltalake import DeltaTable

from lakehouse import tables
from lakehouse.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Row = dict[str, Any]
_PART: Final = re.compile(r"'[^']*'|(?<![:\w]):([a-z_]\w*)")
NOW: Final = "current_timestamp"


def jmxlake(*arguments: str) -> str:
    """What the command prints."""
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def in_duckdb(lake: Path, zone: str = "UTC", now: str = NOW) -> duckdb.DuckDBPyConnection:
    """Views over the Parquet files of the tables, under the name of DuckDB's own extension.

    Args:
        lake: Folder of the lake.
        zone: Of local instants.
        now: What the clock says, as SQL.
    """
    connection = duckdb.connect()
    for table in tables.GOLD:
        place = f"{lake}/{table.path}"
        if files := DeltaTable(place).file_uris():
            rows = connection.read_parquet(files, hive_partitioning=True, union_by_name=True)
            rows.create_view(place)
        else:
            columns = ", ".join(f'"{one.name}" {_type(one.type)}' for one in table.columns)
            connection.execute(f'CREATE TABLE "{place}" ({columns})')
    connection.execute("CREATE MACRO delta_scan(fake) AS TABLE FROM query_table(fake)")
    sql = jmxlake("views", "--dialect", "duckdb", "--time-zone", zone, str(lake))
    connection.execute(sql.replace(NOW, now))
    connection.execute("USE kafka")
    return connection


def _type(type_: str) -> str:
    if type_.startswith("map"):
        return "MAP(VARCHAR, TIMESTAMPTZ)" if "timestamp" in type_ else "MAP(VARCHAR, DOUBLE)"
    names = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ", "array<string>": "VARCHAR[]"}
    return names.get(type_, "INTEGER[]" if type_ == "array<int>" else type_)


def asked(
    connection: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, str] | None = None
) -> list[Row]:
    """Rows of a query in which markers, such as ``:week``, have these values."""
    used = {name for name in _PART.findall(sql) if name}
    given = _PART.sub(lambda one: f"${one[1]}" if one[1] else one[0], sql)
    found = connection.execute(given, {name: (values or {})[name] for name in used} or None)
    names = [one[0] for one in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
