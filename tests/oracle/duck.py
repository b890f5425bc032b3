"""Gold's rows in DuckDB's SQL (gold.sql), over the files of bronze."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lakehouse import tables
from tests.oracle import decoded
from tests.oracle.gold import KEYS
from tests.oracle.grains import grain_name

if TYPE_CHECKING:
    import duckdb

    from tests.oracle.plain import Rows

ANSWERED = ("topics", "partitions", "clients", "groups", "brokers", "coverage", "non_consumed")


def wanted(root: Path, now_us: int, window_us: int = 300_000_000) -> dict[str, Rows]:
    """Every table that gold.sql answers, computed from the lake at a path."""
    duck = decoded.connection()
    for table in (tables.RUNS, tables.MEMBERS, tables.SCRAPES):
        decoded.view(duck, root, table)
    duck.execute(f"CREATE MACRO now_us() AS {now_us:d}::BIGINT")
    duck.execute(f"CREATE MACRO window_us() AS {window_us:d}::BIGINT")
    duck.execute(f"CREATE MACRO window_name() AS '{grain_name(window_us)}'")
    duck.execute((Path(__file__).parent / "gold.sql").read_text("utf-8"))
    return {name: _rows(duck, name) for name in ANSWERED}


def _rows(duck: duckdb.DuckDBPyConnection, name: str) -> Rows:
    keys = KEYS[name]
    found = duck.table(name)
    names = [column for column in found.columns if column not in keys]
    order = ", ".join(f'"{column}"' for column in (*keys, *names))
    return {
        tuple(row[: len(keys)]): dict(zip(names, row[len(keys) :], strict=True))
        for row in duck.execute(f"SELECT {order} FROM {name}").fetchall()  # noqa: S608
    }
