"""Upgrade of gold from an older version, including hours that bronze no longer has.

One commit rebuilds each table under this version's names; all rows keep their figures. If a table
has a new name or place, the new table is written first. Then the older table is marked and dropped.
gold/progress is last, and rollups of this version do not start before. After a kill the command
continues with the other tables.

In gold's first layout each table had rows of several window lengths, with a column ``grain``. The
5-minute rows of such a table are written first, to a separate table. Then its hours replace it.
"""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from lakehouse import tables
from lakehouse.core import table_faults, table_notes
from lakehouse.core.periods import DAY_US, HOUR_US, micros, window_name
from lakehouse.core.table_faults import older
from lakehouse.core.table_notes import CHECKED, DUE, NOTE, Noted
from lakehouse.engines.engine import Detail, Engine
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.engines.relation import select
from lakehouse.kernel import arrow_types
from lakehouse.rollup import gold_tables, lease
from lakehouse.tables import Column, Table

_TAKEN: Final = "jmxlake.taken_over"
"""Property of an older table whose rows this version has copied; it is dropped next."""
_GRAIN: Final = Column("grain", "string", "length of the row's window")
_OF_A_GRAIN: Final = (*tables.HOURS, tables.DISTRIBUTIONS, tables.REJECTED)


def upgrade(
    engine: Engine, step: Callable[[str], None] = lambda _: None, *, take_over: bool = False
) -> int:
    """Upgrade gold of an older version. Gold of this version is not changed.

    Args:
        engine: Engine of the lake.
        step: Receives the name of each upgraded table.
        take_over: Take the lease even if another process holds it.

    Returns:
        Number of upgraded tables.

    Raises:
        LeaseHeldError: A rollup is running.
        LeaseLostError: Another writer changed gold at the same time.
        TableSchemaError: The type of a column differs from its declaration.
    """
    if not _due(engine):
        return 0
    found = engine.detail(tables.LEASE)
    if gold_tables.is_outdated(engine.lake, tables.LEASE, found):
        gold_tables.prepare(engine, tables.LEASE)
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
    """Check that this version wrote gold.

    Args:
        engine: Engine of the lake.
        found: Tables below gold.

    Raises:
        OlderGoldError: An older version wrote gold.
    """
    is_older = any(
        detail is not None and table_faults.is_older(table, detail.columns)
        for table, detail in found.items()
    )
    progress = older(tables.PROGRESS)
    if is_older or (_is_moved(engine, tables.PROGRESS) and engine.detail(progress) is not None):
        raise table_faults.older_gold(engine.lake.gold or f"{engine.lake.root}/gold")


def _due(engine: Engine) -> dict[Table, Detail]:
    """Return the tables to upgrade, in order, with the metadata of the older tables."""
    found = gold_tables.details(engine, map(older, table_faults.UPGRADED))
    pairs = ((table, found[older(table)]) for table in table_faults.UPGRADED)
    return {
        table: detail
        for table, detail in pairs
        if detail is not None
        and (_is_moved(engine, table) or table_faults.is_older(table, detail.columns))
    }


def _is_moved(engine: Engine, table: Table) -> bool:
    """Return True if an older version had a table at another place."""
    return engine.lake.name(older(table)) != engine.lake.name(table)


@dataclass(frozen=True, slots=True)
class _State:
    """State of the older gold.

    Attributes:
        finest: Length of the 5-minute windows, as named in the first layout.
        known: Tables by older name. Empty if gold/progress did not note them.
        now_us: End of an open doubtful interval (µs).
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
            engine.create(made)
        none = arrow_types.rows(arrow_types.of_table(table), [])
        engine.rebuild(made, select(sql, old=engine.rows(read), none=none))
    if is_moved:  # without this mark a second run would copy its rows again
        check()
        engine.set_properties(before, {_TAKEN: "true"})


def _notes(engine: Engine, table: Table, detail: Detail, state: _State) -> dict[str, str]:
    """Return the properties that note incomplete hours, or hours in doubt until a rollup."""
    kept = {name: detail.properties[name] for name in (NOTE, DUE) if name in detail.properties}
    if table not in CHECKED:
        return kept
    doubted = gold_tables.untrusted(engine, older(table), detail, state.known, state.now_us)
    if not doubted:
        return kept
    gaps = [*table_notes.gaps(detail.properties), *doubted]
    return table_notes.properties(gaps, due=True)


def _has_grains(table: Table, detail: Detail) -> bool:
    """Return True if a table has the first layout."""
    return table in _OF_A_GRAIN and _GRAIN.name in detail.columns


def _statements(table: Table, detail: Detail, finest: str) -> Iterator[tuple[Table, str]]:
    """Yield the tables that replace an older table, in the order of writing."""
    there = detail.columns
    if table is tables.LEASE:  # this process holds the new lease
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
    """Return the SELECT of an older table under the names of this version."""
    of_grain = "" if grain is None else f" WHERE {is_same('r.grain', grain)}"
    columns = ", ".join(_column(table, column, there) for column in table.columns)
    return f"SELECT {columns} FROM {{old}} r LEFT JOIN {{none}} n ON 1 = 0{of_grain}"


def _column(table: Table, column: Column, there: Mapping[str, str]) -> str:
    """Return a column of this version. It is null if the older table lacks it."""
    if column.name == "date" and "date" not in there:
        days = f"CAST((r.window - r.window % {DAY_US}) / {DAY_US} AS INT)"
        return f"DATE '1970-01-01' + {days} AS date"
    name = table_faults.OLDER_COLUMNS.get(column.name, column.name)
    # A rollup notes the tables again, because their IDs and versions change here.
    is_known = name in there and (table, name) != (tables.PROGRESS, "tables")
    return f"r.{name} AS {column.name}" if is_known else f"n.{column.name}"


def _sli_windows(there: Mapping[str, str], finest: str) -> str:
    """Return the SELECT of 5-minute rows, without fully good hours of a subject."""
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
    """Return the SELECT of hours: sums of windows, with ``before_us`` of the first window."""
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
