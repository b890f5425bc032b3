"""Rows to Arrow without pyarrow: read back by another engine they are the same."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import deltalake
import duckdb
import pytest

from collector.delivery.arrow import schema, to_arrow
from lakehouse import tables

if TYPE_CHECKING:
    from pathlib import Path

_SAMPLES: dict[str, tuple[Any, Any]] = {
    "string": ("naïve <b>", "naïve <b>"),
    "int": (7, 7),
    "bigint": (1 << 40, 1 << 40),
    "double": (0.5, 0.5),
    "date": (19_675, dt.date(2023, 11, 14)),
    "map<string,string>": ((("a", "b"), ("c", "d")), {"a": "b", "c": "d"}),
    "array<int>": ((1, 2, 3), [1, 2, 3]),
    "array<string>": (("x",), ["x"]),
    "array<struct<user:string,client_id:string>>": (
        (("u", None), (None, "c")),
        [{"user": "u", "client_id": None}, {"user": None, "client_id": "c"}],
    ),
}  # fmt: skip
_INSTANT_US = 1_700_000_000_123_457


@pytest.mark.parametrize("table", tables.BRONZE, ids=lambda table: table.name)
def test_rows_come_back_as_they_were(table: tables.Table, tmp_path: Path) -> None:
    full, bare = [], []
    for column in table.columns:
        value = _INSTANT_US if column.type == "timestamp" else _SAMPLES[column.type][0]
        full.append(value)
        bare.append(None if column.nullable else value)
    delta = deltalake.DeltaTable.create(
        tmp_path, schema=schema(table), partition_by=list(table.partition_by)
    )
    deltalake.write_deltalake(delta, to_arrow(table, [full, bare]), mode="append")
    relation = duckdb.read_parquet(delta.file_uris(), hive_partitioning=True)
    for column in table.columns:
        query = f'"{column.name}"'
        expected = _SAMPLES.get(column.type, (None, None))[1]
        if column.type == "timestamp":
            query, expected = f'epoch_us("{column.name}")', _INSTANT_US
        got = [row[0] for row in relation.project(query).fetchall()]
        wanted = [expected, None if column.nullable else expected]
        assert sorted(got, key=str) == sorted(wanted, key=str), column.name


def test_no_rows_are_an_empty_table() -> None:
    assert to_arrow(tables.RUNS, []).num_rows == 0
