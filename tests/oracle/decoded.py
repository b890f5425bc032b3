"""Bronze for the oracle: rows by hand or from a lake, judged, with their sets."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from lakehouse import tables
from tests.oracle import judged, once
from tests.oracle.rows import Bronze, Run, Scrapes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from lakehouse.tables import Table

Row = dict[str, Any]
Sets = dict[tuple[str, str], set[tuple[Any, ...]]]

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def read(root: Path, now_us: int, window_us: int = 300_000_000) -> Bronze:
    """Return the bronze of a lake.

    Args:
        root: The lake.
        now_us: Time of the last commit, microseconds.
        window_us: Length of a window.
    """
    runs, members, scrapes = (
        rows(root, table) for table in (tables.RUNS, tables.MEMBERS, tables.SCRAPES)
    )
    return bronze(runs, members, scrapes, now_us, window_us)


def bronze(
    runs: Iterable[Row],
    members: Iterable[Row],
    scrapes: Iterable[Row],
    now_us: int,
    window_us: int = 300_000_000,
) -> Bronze:
    """Return bronze from rows of ``tests.lake_builder``: microseconds, and dates in days."""
    sets, judge = _sets(members), judged.Judge(now_us, window_us)
    return Bronze(
        window_us,
        once.runs([_with_set(_run(row, window_us), sets, judge) for row in runs]),
        once.scrapes(
            [
                replace(one, reason=judge.of_scrapes(one))
                for one in (_scrapes(row, window_us) for row in scrapes)
            ]
        ),
    )


def rows(root: Path, table: Table) -> list[Row]:
    """Return all rows of a Delta table as such plain values."""
    delta = DeltaTable(str(root / table.path))
    found = QueryBuilder().register("told", delta).execute("SELECT * FROM told").read_all()
    return plain(pa.table(found), table)


def plain(found: pa.Table, table: Table) -> list[Row]:
    """Return rows of Arrow: instants in microseconds, dates in days, maps as labels."""
    types = {column.name: column.type for column in table.columns}
    return [
        {name: _plain(value, types[name]) for name, value in row.items()}
        for row in found.to_pylist()
    ]


def _plain(value: Any, type_: str) -> Any:
    match value:
        case dt.datetime():
            return (value - _EPOCH) // _MICROSECOND
        case dt.date():
            return (value - _EPOCH.date()).days
        case list() if type_.startswith("map<"):
            return {key: _plain(one, "") for key, one in value}
        case list() if "client_id" in type_:
            return [(client["user"], client["client_id"]) for client in value]
        case _:
            return value


def _run(row: Row, window_us: int) -> Run:
    names = ("cluster", "source", "metric", "topic", "partition", "user", "client_id", "group")
    figures = ("start", "end", "lead_us", "tail_us", "value", "series", "members")
    return Run(
        *(row[name] for name in names),
        tuple(sorted(dict(row["labels"] or {}).items())),
        *(row[name] for name in figures),
        frozenset(row["flags"] or ()),
        *(row[name] for name in ("agent", "batch", "date")),
        row["start"] - row["start"] % window_us,
    )


def _scrapes(row: Row, window_us: int) -> Scrapes:
    names = (
        "cluster", "source", "family", "start", "end", "outcome", "scrapes", "interval_us",
        "seconds_total", "seconds_max", "error", "agent", "batch", "date",
    )  # fmt: skip
    return Scrapes(*(row[name] for name in names), row["start"] - row["start"] % window_us)


def _sets(members: Iterable[Row]) -> Sets:
    """Return the contents of every set; with several contents a set is unknown."""
    found: Sets = {}
    for row in members:
        content = (row["topic"], _tuple(row["partitions"]), _tuple(row["clients"]))
        found.setdefault((row["cluster"], row["set"]), set()).add(content)
    return found


def _tuple(items: Iterable[Any] | None) -> tuple[Any, ...] | None:
    return None if items is None else tuple(items)


def _with_set(run: Run, sets: Sets, judge: judged.Judge) -> Run:
    told = sets.get((run.cluster, run.members), set()) if run.members is not None else set()
    reason = judge.of_run(run, told)
    if len(told) != 1:
        return replace(run, reason=reason)
    ((_, partitions, clients),) = told
    return replace(run, partitions=partitions, clients=clients, reason=reason)
