"""What the kernel gives back, as the oracle's rows, and bit by bit."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pyarrow as pa

from lakehouse import tables
from tests.kernel_inputs import WINDOW_US, one_call, placed
from tests.oracle import decoded, gold

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakehouse.kernel import run_in_duckdb
    from lakehouse.tables import Table
    from tests.lake_builder import Batch
    from tests.oracle.plain import Rows
    from tests.oracle.rows import Bronze

COMMITTED = dt.datetime(2026, 12, 1, tzinfo=dt.UTC)
"""When the rows of these tests were committed last."""

ARROW = {
    "string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(),
    "boolean": pa.bool_(), "date": pa.date32(), "timestamp": pa.int64(),
    "map<string,double>": pa.map_(pa.string(), pa.float64()),
    "map<string,timestamp>": pa.map_(pa.string(), pa.int64()),
}  # fmt: skip
"""Types of the kernel's columns by those that the tables declare: instants are microseconds."""

DECLARED = {table.name: table for table in tables.GOLD}


def bronze(batch: Batch, window_us: int = WINDOW_US) -> Bronze:
    """What the oracle makes of the rows that the kernel gets."""
    own, now_us = placed(batch), int(COMMITTED.timestamp()) * 1_000_000
    return decoded.bronze(own.runs, own.members, own.scrapes, now_us, window_us)


def rolled_up(program: run_in_duckdb.Program, batch: Batch) -> dict[str, Rows]:
    """The kernel's rows of a batch by their key, all in one call."""
    return by_key(one_call(placed(batch)).roll_up(program))


def of_cluster(found: dict[str, Rows], cluster: str) -> dict[str, Rows]:
    """Return the rows of a cluster, by their keys without its name."""
    return {
        name: {("", *key[1:]): row for key, row in rows.items() if key[0] == cluster}
        for name, rows in found.items()
    }


def by_key(found: dict[str, pa.Table]) -> dict[str, Rows]:
    return {
        name: gold.by_key(name, decoded.plain(rows, DECLARED[name])) for name, rows in found.items()
    }


def schema(table: Table) -> list[tuple[str, pa.DataType]]:
    return [(column.name, ARROW[column.type]) for column in table.columns]


def bits(found: pa.Table) -> pa.Table:
    """The same with doubles as the integers of their bits: 0.0 and -0.0 are not one."""
    for at, field in enumerate(found.schema):
        if field.type == pa.float64():
            whole = found.column(at).combine_chunks().view(pa.int64())
            found = found.set_column(at, field.name, whole)
    return found.combine_chunks()


def in_order(found: Iterable[pa.Table], name: str) -> pa.Table:
    """Rows of several calls as those of one, in an order of their own."""
    keys = [(column, "ascending") for column in gold.KEYS[name]]
    return pa.concat_tables(found).sort_by(keys)


def differing(found: dict[str, pa.Table], right: dict[str, pa.Table]) -> list[str]:
    """Names of tables that are not the same to the bit, with some rows that only one has."""
    told = [f"only one of them has {name}" for name in found.keys() ^ right.keys()]
    for name in found.keys() & right.keys():
        ours, others = bits(found[name]), bits(right[name])
        if not ours.equals(others):
            rows = [{repr(row) for row in one.to_pylist()} for one in (found[name], right[name])]
            more, fewer = sorted(rows[0] - rows[1])[:3], sorted(rows[1] - rows[0])[:3]
            told.append(f"{name}: {more} not {fewer}")
    return sorted(told)
