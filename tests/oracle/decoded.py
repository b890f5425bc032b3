"""Bronze as plain rows: judged, with their sets, out of the live files of a lake."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
from deltalake import DeltaTable

from lakehouse import tables
from tests.oracle import judged
from tests.oracle.rows import Bronze, Run, Scrapes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakehouse.tables import Table


def connection() -> duckdb.DuckDBPyConnection:
    connected = duckdb.connect(config={"threads": 2})
    connected.execute("SET enable_progress_bar = false")
    return connected


_DUCK_TYPES = {
    "string": "VARCHAR", "int": "INTEGER", "bigint": "BIGINT", "double": "DOUBLE",
    "timestamp": "TIMESTAMPTZ", "date": "DATE", "boolean": "BOOLEAN",
    "map<string,string>": "MAP(VARCHAR, VARCHAR)", "map<string,double>": "MAP(VARCHAR, DOUBLE)",
    "array<int>": "INTEGER[]", "array<string>": "VARCHAR[]",
    "array<struct<user:string,client_id:string>>": 'STRUCT("user" VARCHAR, client_id VARCHAR)[]',
}  # fmt: skip


def view(duck: duckdb.DuckDBPyConnection, root: Path, table: Table) -> None:
    """The live files of a Delta table as a view of its name, its partition columns among them."""
    files = DeltaTable(str(root / table.path)).file_uris()
    if not files:
        names = (f'NULL::{_DUCK_TYPES[column.type]} AS "{column.name}"' for column in table.columns)
        duck.execute(f"CREATE VIEW {table.name} AS SELECT {', '.join(names)} WHERE false")
        return
    names = (f'"{column.name}"' for column in table.columns)
    keys = ", ".join(f"'{key}': 'VARCHAR'" for key in table.partition_by)
    partitioned = f", hive_partitioning=true, hive_types={{{keys}}}" if keys else ""
    duck.execute(
        f"CREATE VIEW {table.name} AS SELECT {', '.join(names)} "  # noqa: S608 - our own names
        f"FROM read_parquet({files!r}, union_by_name=true{partitioned})"
    )


def read(root: Path, now_us: int, window_us: int = 300_000_000) -> Bronze:
    """The bronze of a lake.

    Args:
        root: The lake.
        now_us: When it was committed last, microseconds.
        window_us: The finest grain.
    """
    duck = connection()
    for table in (tables.RUNS, tables.MEMBERS, tables.SCRAPES):
        view(duck, root, table)
    sets = _sets(duck)
    judge = judged.Judge(now_us, window_us)
    runs = (_with_set(run, sets, judge) for run in _runs(duck, window_us))
    scrapes = _scrapes(duck, window_us)
    return Bronze(
        window_us,
        list(runs),
        [replace(row, reason=judge.of_scrapes(row)) for row in scrapes],
    )


def _runs(duck: duckdb.DuckDBPyConnection, window_us: int) -> Iterator[Run]:
    rows = duck.execute(
        'SELECT cluster, source, metric, topic, partition, "user", client_id, "group", labels, '
        'epoch_us(start), epoch_us("end"), lead_us, tail_us, value, series, members, flags, agent, '
        "batch, date_diff('day', DATE '1970-01-01', date::DATE), "
        "epoch_us(start) - epoch_us(start) % $1 FROM runs",
        [window_us],
    )
    for row in rows.fetchall():
        labels = tuple(sorted((row[8] or {}).items()))
        yield Run(*row[:8], labels, *row[9:16], frozenset(row[16] or ()), *row[17:])


def _scrapes(duck: duckdb.DuckDBPyConnection, window_us: int) -> Iterator[Scrapes]:
    rows = duck.execute(
        'SELECT cluster, source, family, epoch_us(start), epoch_us("end"), outcome, scrapes, '
        "interval_us, seconds_total, seconds_max, agent, batch, "
        "date_diff('day', DATE '1970-01-01', date::DATE), "
        "epoch_us(start) - epoch_us(start) % $1 FROM scrapes",
        [window_us],
    )
    for row in rows.fetchall():
        yield Scrapes(*row)


def _sets(duck: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], set[tuple[Any, ...]]]:
    """What every set is said to hold; more than one content means that nobody knows."""
    rows = duck.execute('SELECT cluster, "set", topic, partitions, clients FROM members')
    found: dict[tuple[str, str], set[tuple[Any, ...]]] = {}
    for cluster, name, topic, partitions, clients in rows.fetchall():
        numbers = None if partitions is None else tuple(partitions)
        pairs = None
        if clients is not None:
            pairs = tuple((client["user"], client["client_id"]) for client in clients)
        found.setdefault((cluster, name), set()).add((topic, numbers, pairs))
    return found


def _with_set(
    run: Run, sets: dict[tuple[str, str], set[tuple[Any, ...]]], judge: judged.Judge
) -> Run:
    told = sets.get((run.cluster, run.members), set()) if run.members is not None else set()
    reason = judge.of_run(run, told)
    if len(told) != 1:
        return replace(run, reason=reason)
    ((_, partitions, clients),) = told
    return replace(run, partitions=partitions, clients=clients, reason=reason)
