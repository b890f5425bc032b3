"""Reference of tables, generated from the table declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from docs.tools.layout import code, page, prose, table
from lakehouse.tables import BRONZE, CATALOGUES, CONTROL, GOLD, ROLLUP_STATE, WINDOWS

if TYPE_CHECKING:
    from lakehouse.tables import Table
    from lakehouse.tables.table import Column

ALL: Final = (*BRONZE, *CATALOGUES, *CONTROL, *GOLD, *ROLLUP_STATE)
"""Every table of a lake."""

_INTRODUCTION: Final = """\
A lake is a folder or a bucket's prefix with Delta tables below `bronze/`, `gold/` and `control/`.
Only agents and maintenance may write to bronze. Rollups compute gold from it. Types are Spark SQL
types. Durations are whole microseconds (`_us`), timestamps are UTC. NULL is never zero: it is idle
or unknown, as the column's comment explains. The tables contain the same comments
(`DESCRIBE TABLE EXTENDED`).

A table of gold has one row per hour. A second table with the suffix `_windows` has the agents'
windows (5 minutes by default) of the last 100 days. Both cover the same time, so add up only one of
them. A day or a week is a sum of hours; *over time* is the way to combine a column. `_low_us` and
`_high_us` are bounds of the column without the suffix.

In a catalog each layer is a schema, except for tables that name another schema below. Control is in
the schema of bronze."""

_LAYERS: Final = {
    "bronze": "## Bronze\n\nRuns of the agents. The format is frozen: a new one is a new table.",
    "control": "## Control\n\nTables that people write and agents read.",
    "gold": "## Gold\n\nResults and state of the rollups.",
}


def text() -> str:
    """Return the page."""
    parts = []
    listed = [entry for entry in ALL if entry not in WINDOWS.values()]
    for layer, head in _LAYERS.items():
        parts += [head, *(_table(entry) for entry in listed if entry.layer == layer)]
    return page("Tables", _INTRODUCTION, *parts)


def _table(entry: Table) -> str:
    lines = [f"### {entry.path}", f"{prose(entry.comment)}."]
    if entry.partition_by:
        lines.append(f"Partitioned by {', '.join(map(code, entry.partition_by))}.")
    if entry.shelf:
        lines.append(f"In a catalog: schema {code(f'{entry.layer}_{entry.shelf}')}.")
    if entry.name in WINDOWS:
        lines.append(f"{code(WINDOWS[entry.name].path)} has the same columns.")
    rows = [_cells(column) for column in entry.columns]
    head = ("Column", "Type", "NULL", "Meaning")
    if not entry.measures:
        return "\n\n".join([*lines, table(head, rows)])
    over = [(*row, column.over) for row, column in zip(rows, entry.columns, strict=True)]
    return "\n\n".join([*lines, table((*head, "Over time"), over)])


def _cells(column: Column) -> tuple[str, ...]:
    null = "" if column.nullable else "never"
    return code(column.name), code(column.type), null, prose(column.comment)
