"""Schemas of the tables: bronze's are checked, gold's are created, completed or converted.

In gold's first layout each table held rows of several lengths of windows, with the columns
``grain`` and ``period``. It is changed in place: bronze may no longer hold what it was made of. The
finest rows of such a table are written first, to their own table; then its hours replace it. Each
is one commit. A table that still has ``grain`` is not done, so after a kill it starts again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from lakehouse import tables
from lakehouse.core import display, missing_files
from lakehouse.core.lake import Lake
from lakehouse.core.periods import DAY_US, HOUR_US, window_name
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import is_same
from lakehouse.errors import TableSchemaError
from lakehouse.tables import Column, Table

EVERY: Final[tuple[Table, ...]] = (*tables.GOLD, *tables.ROLLUP_STATE)
"""All tables below gold, but an engine's scratch tables."""

_GRAIN: Final = Column("grain", "string", "length of the row's window")
_OF_A_GRAIN: Final = (*tables.HOURS, tables.DISTRIBUTIONS, tables.REJECTED)


def check_bronze(engine: Engine, *wanted: Table) -> None:
    """Check that tables of bronze exist with the columns that this version of jmxlake reads.

    Raises:
        TableNotFoundError: A table is not there.
        TableSchemaError: A table lacks a column, or has it with another type.
    """
    for table in wanted:
        found = engine.schema(table)
        if found is None:
            raise missing_files.no_table(table, engine.lake.name(table))
        every = dict.fromkeys(table.column_names, "missing") | dict(found)
        if wrong := table.wrong_types(every):
            raise TableSchemaError(
                f"{engine.lake.name(table)}: {_listed(wrong)}; another version of jmxlake made "
                "it, or it is no table of jmxlake"
            )


def is_outdated(lake: Lake, table: Table, found: Mapping[str, str] | None) -> bool:
    """Whether a table of gold is missing, or lacks columns of this version.

    Columns that this version does not declare are ignored: rows that it writes have null there.

    Raises:
        TableSchemaError: It has a column of another type, or is not a table of jmxlake.
    """
    if found is None:
        return True
    name = lake.name(table)
    unknown = table.undeclared(found)
    missing = [column for column in table.columns if column.name not in found]
    # An older version's table lacks columns, but none of those that every version requires.
    foreign = next((column.name for column in missing if not column.nullable), None)
    if unknown and foreign:
        raise TableSchemaError(
            f"{name}: it has the column {display.line(unknown[0])} and lacks {foreign}: it is no "
            "table of jmxlake; give gold a schema of its own"
        )
    if wrong := table.wrong_types(found):
        raise TableSchemaError(f"{name}: {_listed(wrong)}; it is no table of jmxlake")
    return bool(missing)


def _listed(wrong: Sequence[str]) -> str:
    """Columns of other types, whose text is of the table's."""
    return display.line("; ".join(wrong))


def prepare(engine: Engine, table: Table) -> str:
    """Create a table of gold or add the columns it lacks; returns a line that says which."""
    there = engine.schema(table)
    if there is None:
        engine.create(table)
        return f"new table {table.name}"
    missing = [column for column in table.columns if column.name not in there]
    if missing:
        engine.add_columns(table, missing)
    return f"new columns of {table.name}: {', '.join(column.name for column in missing)}"


def prepare_all(engine: Engine, outdated: Sequence[Table]) -> Iterator[str]:
    """Prepare tables, several at once; yields a line for each."""
    with ThreadPoolExecutor(engine.at_once) as pool:
        yield from pool.map(lambda table: prepare(engine, table), outdated)


def of_first_layout(found: Mapping[Table, Mapping[str, str] | None]) -> list[Table]:
    """The tables of gold that still have the first layout."""
    return [table for table in _OF_A_GRAIN if "grain" in (found[table] or ())]


def upgrade(
    engine: Engine,
    chosen: Sequence[Table],
    window_seconds: int,
    check: Callable[[], None],
    step: Callable[[str], None],
) -> None:
    """Convert tables to the layout of this version.

    Args:
        engine: The engine; the lease is held.
        chosen: Tables that have the first layout.
        window_seconds: Length of gold's finest windows.
        check: Called before each commit; raises where no more may be made.
        step: Called with what was done.
    """
    finest = window_name(window_seconds)
    for table in chosen:
        old = replace(table, columns=(*table.columns, _GRAIN))
        for target, sql in _statements(table, engine.schema(table) or {}, finest):
            check()
            engine.rebuild(target, engine.query(sql, old=engine.rows(old)))
            step(f"new layout of {target.name}")


def _statements(table: Table, there: Mapping[str, str], finest: str) -> list[tuple[Table, str]]:
    """The tables that replace a table, in order of writing; itself last."""
    windows = tables.WINDOWS.get(table.name)
    if windows is None:
        return [(table, _rows(table, there, finest if table is tables.REJECTED else "1h"))]
    if table is not tables.SLI:
        return [(windows, _rows(table, there, finest)), (table, _rows(table, there, "1h"))]
    return [(windows, _sli_windows(there, finest)), (table, _sli_hours(there, finest))]


def _rows(table: Table, there: Mapping[str, str], grain: str) -> str:
    return f"SELECT {_columns(table, there)} FROM {{old}} r WHERE {is_same('r.grain', grain)}"


def _columns(table: Table, there: Mapping[str, str]) -> str:
    others = (_column(column, there) for column in table.columns if column.name != "date")
    date = f"DATE '1970-01-01' + CAST((r.window - r.window % {DAY_US}) / {DAY_US} AS INT)"
    return f"{date} AS date, {', '.join(others)}"


def _column(column: Column, there: Mapping[str, str]) -> str:
    kind = "BIGINT" if column.type == "timestamp" else column.type
    return f"r.{column.name}" if column.name in there else f"CAST(NULL AS {kind}) AS {column.name}"


def _sli_windows(there: Mapping[str, str], finest: str) -> str:
    """The finest rows, but of subjects and hours that were good throughout."""
    names = ", ".join(f"t.{name}" for name in tables.SLI.column_names)
    keys = ", ".join(f"r.{key}" for key in (*tables.SLI.keys, "epoch_hour"))
    sums = ", ".join(
        f"sum(r.{name}) OVER (PARTITION BY {keys}) AS hours_{name}"
        for name in ("good_us", "bad_high_us")
    )
    return (
        f"SELECT {names} FROM (SELECT {_columns(tables.SLI, there)}, {sums} FROM {{old}} r "
        f"WHERE {is_same('r.grain', finest)}) t "
        f"WHERE NOT (t.hours_good_us = {HOUR_US} AND t.hours_bad_high_us = 0)"
    )


def _sli_hours(there: Mapping[str, str], finest: str) -> str:
    """Rows of hours, which are sums of windows with the spill of the first one."""
    keys = ", ".join(f"t.{key}" for key in tables.SLI.keys)
    first = f"max(CASE WHEN t.window % {HOUR_US} = 0 THEN t.spill_us END)"
    measures = ", ".join(
        f"CASE WHEN count(t.spill_us) > 0 THEN coalesce({first}, 0) END AS spill_us"
        if column.over == "first"
        else f"CAST(sum(t.{column.name}) AS BIGINT) AS {column.name}"
        for column in tables.SLI.measures
    )
    hour = f"t.window - t.window % {HOUR_US}"
    return (
        f"SELECT t.date, {hour} AS window, {keys}, {measures} "
        f"FROM ({_rows(tables.SLI, there, finest)}) t GROUP BY t.date, {hour}, {keys}"
    )
