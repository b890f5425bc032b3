"""Takes over gold that an older version wrote, also hours that bronze no longer has.

Each table is rebuilt under this version's names by one commit; every row keeps its figures. A table
with another name or place is written first, then the older one is marked and dropped. gold/progress
is last, and until then no rollup of this version starts. So after a kill the command goes on with
the tables that are left.

In gold's first layout each table held rows of several lengths of windows, with a column ``grain``.
The finest rows of such a table are written first, to their own table; then its hours replace it.
"""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from lakehouse import tables
from lakehouse.core import older_gold, table_notes
from lakehouse.core.older_gold import older
from lakehouse.core.periods import DAY_US, HOUR_US, micros, window_name
from lakehouse.core.table_notes import CHECKED, DUE, NOTE, Noted
from lakehouse.engines import completeness
from lakehouse.engines.engine import Detail, Engine
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.engines.relation import select
from lakehouse.kernel import arrow_types
from lakehouse.rollup import lease, table_schemas
from lakehouse.tables import Column, Table

_TAKEN: Final = "jmxlake.taken_over"
"""Property of an older table that this version has at another place, and drops next."""
_GRAIN: Final = Column("grain", "string", "length of the row's window")
_OF_A_GRAIN: Final = (*tables.HOURS, tables.DISTRIBUTIONS, tables.REJECTED)


def upgrade(
    engine: Engine, step: Callable[[str], None] = lambda _: None, *, take_over: bool = False
) -> int:
    """Take over gold of an older version; gold of this version stays as it is.

    Args:
        engine: The engine of the lake.
        step: Called with each table that is done.
        take_over: Take the lease even if another process holds it.

    Returns:
        The number of tables that were taken over.

    Raises:
        LeaseHeldError: A rollup is at work.
        LeaseLostError: Another writer changed gold meanwhile.
        TableSchemaError: A table has columns of other types.
    """
    if not _due(engine):
        return 0
    found = engine.detail(tables.LEASE)
    if table_schemas.is_outdated(engine.lake, tables.LEASE, found):
        table_schemas.prepare(engine, tables.LEASE)
    with lease.hold(engine, lease.USUAL, take_over=take_over) as held:
        due, taken = _due(engine), 0
        state = _state(engine, due)
        for table, detail in due.items():
            if _TAKEN not in detail.properties:
                _take_over(engine, table, detail, state, held.check)
                step(table.name)
                taken += 1
            if _is_moved(engine, table):
                held.check()
                engine.drop(older(table))
    return taken


def check(engine: Engine, found: Mapping[Table, Detail | None]) -> None:
    """Check that gold is of this version.

    Args:
        engine: The engine of the lake.
        found: The tables below gold.

    Raises:
        OlderGoldError: An older version wrote it.
    """
    is_older = any(
        detail is not None and older_gold.is_older(table, detail.columns)
        for table, detail in found.items()
    )
    progress = older(tables.PROGRESS)
    if is_older or (_is_moved(engine, tables.PROGRESS) and engine.detail(progress) is not None):
        raise older_gold.refusal(engine.lake.gold or f"{engine.lake.root}/gold")


def _due(engine: Engine) -> dict[Table, Detail]:
    """The tables to take over, in order, each with the older one's metadata."""
    found = completeness.details(engine, map(older, older_gold.EVERY))
    pairs = ((table, found[older(table)]) for table in older_gold.EVERY)
    return {
        table: detail
        for table, detail in pairs
        if detail is not None
        and (_is_moved(engine, table) or older_gold.is_older(table, detail.columns))
    }


def _is_moved(engine: Engine, table: Table) -> bool:
    """Whether an older version had a table at another place."""
    return engine.lake.name(older(table)) != engine.lake.name(table)


@dataclass(frozen=True, slots=True)
class _State:
    """What the older gold's progress says.

    Attributes:
        finest: Length of the finest windows, as the first layout names it.
        known: Its tables, by older name; empty: it did not note them.
        now_us: End of a time in doubt that has not ended, microseconds.
    """

    finest: str
    known: Mapping[str, Noted]
    now_us: int


def _state(engine: Engine, due: Mapping[Table, Detail]) -> _State:
    now_us = (micros(dt.datetime.now(dt.UTC)) // HOUR_US + 1) * HOUR_US
    row: Row = {}
    if detail := due.get(tables.PROGRESS):
        newest = "SELECT r.* FROM {rows} r ORDER BY r.at DESC LIMIT 1"
        rows = engine.collect(select(newest, rows=engine.rows(older(tables.PROGRESS))))
        row = next(iter(rows.to_pylist()), row)
    seconds = row.get("window_seconds") or tables.DEFAULT_WINDOW_SECONDS
    known = table_notes.known_tables(row.get("tables"), detail and detail.id)
    return _State(window_name(seconds), known, now_us)


def _take_over(
    engine: Engine, table: Table, detail: Detail, state: _State, check: Callable[[], None]
) -> None:
    before, is_moved = older(table), _is_moved(engine, table)
    has_grains = _has_grains(table, detail)
    notes = _notes(engine, table, detail, state)
    if not is_moved and not notes.items() <= detail.properties.items():
        check()
        engine.set_properties(before, notes)
    read = replace(before, columns=(*before.columns, _GRAIN)) if has_grains else before
    for target, sql in _statements(table, detail, state.finest):
        check()
        made = replace(target, properties=target.properties | notes)
        if is_moved:
            engine.define(made)
        none = arrow_types.rows(arrow_types.of_table(table), [])
        engine.rebuild(made, select(sql, old=engine.rows(read), none=none))
    if is_moved:  # once its rows are gone they must not be taken over again
        check()
        engine.set_properties(before, {_TAKEN: "true"})


def _notes(engine: Engine, table: Table, detail: Detail, state: _State) -> dict[str, str]:
    """Properties that note hours in which a table is incomplete, or in doubt until a rollup."""
    kept = {name: detail.properties[name] for name in (NOTE, DUE) if name in detail.properties}
    if table not in CHECKED:
        return kept
    doubted = completeness.untrusted(engine, older(table), detail, state.known, state.now_us)
    if not doubted:
        return kept
    gaps = [*table_notes.gaps(detail.properties), *doubted]
    return table_notes.properties(gaps, due=True)


def _has_grains(table: Table, detail: Detail) -> bool:
    """Whether a table has the first layout."""
    return table in _OF_A_GRAIN and _GRAIN.name in detail.columns


def _statements(table: Table, detail: Detail, finest: str) -> Iterator[tuple[Table, str]]:
    """The tables that an older one becomes, in order of writing; its own is last."""
    there = detail.columns
    if table is tables.LEASE:  # this process holds the new one
        return
    if not _has_grains(table, detail):
        yield table, _rows(table, there)
        return
    windows = tables.WINDOWS.get(table.name)
    if windows is None:
        yield table, _rows(table, there, finest if table is tables.REJECTED else "1h")
    elif table is tables.SLI:
        yield windows, _sli_windows(there, finest)
        yield table, _sli_hours(there, finest)
    else:
        yield windows, _rows(windows, there, finest)
        yield table, _rows(table, there, "1h")


def _rows(table: Table, there: Mapping[str, str], grain: str | None = None) -> str:
    """Rows of an older table under the names of this version."""
    of_grain = "" if grain is None else f" WHERE {is_same('r.grain', grain)}"
    columns = ", ".join(_column(table, column, there) for column in table.columns)
    return f"SELECT {columns} FROM {{old}} r LEFT JOIN {{none}} n ON 1 = 0{of_grain}"


def _column(table: Table, column: Column, there: Mapping[str, str]) -> str:
    """A column of this version; null where the older table lacks it."""
    if column.name == "date" and "date" not in there:
        days = f"CAST((r.window - r.window % {DAY_US}) / {DAY_US} AS INT)"
        return f"DATE '1970-01-01' + {days} AS date"
    name = older_gold.COLUMNS.get(column.name, column.name)
    # A rollup notes the tables again: their ids and versions are others now.
    is_known = name in there and (table, name) != (tables.PROGRESS, "tables")
    return f"r.{name} AS {column.name}" if is_known else f"n.{column.name}"


def _sli_windows(there: Mapping[str, str], finest: str) -> str:
    """The finest rows, but of subjects and hours that were good throughout."""
    windows = tables.WINDOWS[tables.SLI.name]
    names = ", ".join(f"t.{name}" for name in windows.column_names)
    keys = ", ".join(f"r.{key}" for key in windows.keys)
    hour = f"r.window_start - r.window_start % {HOUR_US}"
    sums = ", ".join(
        f"sum(r.{name}) OVER (PARTITION BY {keys}, {hour}) AS hours_{name}"
        for name in ("good_us", "bad_high_us")
    )
    return (
        f"SELECT {names} FROM (SELECT r.*, {sums} FROM ({_rows(windows, there, finest)}) r) t "
        f"WHERE NOT (t.hours_good_us = {HOUR_US} AND t.hours_bad_high_us = 0)"
    )


def _sli_hours(there: Mapping[str, str], finest: str) -> str:
    """Rows of hours, which are sums of windows, with ``before_us`` of the first one."""
    windows = tables.WINDOWS[tables.SLI.name]
    keys = ", ".join(f"t.{key}" for key in windows.keys)
    first = f"max(CASE WHEN t.window_start % {HOUR_US} = 0 THEN t.before_us END)"
    measures = ", ".join(
        f"CASE WHEN count(t.before_us) > 0 THEN coalesce({first}, 0) END AS before_us"
        if column.over == "first"
        else f"CAST(sum(t.{column.name}) AS BIGINT) AS {column.name}"
        for column in windows.measures
    )
    hour = f"t.window_start - t.window_start % {HOUR_US}"
    return (
        f"SELECT t.date, {hour} AS hour, {keys}, {measures} "
        f"FROM ({_rows(windows, there, finest)}) t GROUP BY t.date, {hour}, {keys}"
    )
