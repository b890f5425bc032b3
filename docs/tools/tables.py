"""The reference of tables, from the declarations that agents and rollups write by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from docs.tools.layout import code, page, prose, table
from lakehouse.tables import BRONZE, CATALOGUES, GOLD, ROLLUP_STATE, WINDOWS

if TYPE_CHECKING:
    from lakehouse.tables import Table

ALL: Final = (*BRONZE, *CATALOGUES, *GOLD, *ROLLUP_STATE)
"""Every table of a lake."""

_INTRODUCTION: Final = """\
A lake is a folder or a bucket's prefix with Delta tables below `bronze/` and `gold/`. Agents append
to bronze, and nobody else may but the maintenance; rollups make gold of it. Types are as Spark SQL
spells them. Durations are whole microseconds (`_us`), instants are UTC. NULL is never zero: it is
idle, or not known, as the column says. The same comments stand in the tables themselves
(`DESCRIBE TABLE EXTENDED`).

A table of gold has a row an hour. The one beside it, named with `_windows`, has the agents' windows
(5 minutes by default) of the last 100 days: the same time again, so add up one of the two. A day or
a week is a sum of hours; *over time* says how each column combines. `_low_us` and `_high_us` are
bounds of what is without them.

In a catalog each layer is a schema. A table that names another schema below is in that one."""

_LAYERS: Final = {
    "bronze": "## Bronze\n\nWhat agents saw, as runs. Frozen: another version is another table.",
    "gold": "## Gold\n\nWhat rollups make of it, and how they run.",
}


def text() -> str:
    """The page."""
    parts = []
    listed = [one for one in ALL if one not in WINDOWS.values()]
    for layer, head in _LAYERS.items():
        parts += [head, *(_table(one) for one in listed if one.layer == layer)]
    return page("Tables", _INTRODUCTION, *parts)


def _table(one: Table) -> str:
    lines = [f"### {one.path}", f"{prose(one.comment)}."]
    if one.partition_by:
        lines.append(f"Partitioned by {', '.join(map(code, one.partition_by))}.")
    if one.shelf:
        lines.append(f"In a catalog: schema {code(f'{one.layer}_{one.shelf}')}.")
    if one.name in WINDOWS:
        lines.append(f"{code(WINDOWS[one.name].path)} has the same columns.")
    rows = [
        (code(each.name), code(each.type), "" if each.nullable else "never", prose(each.comment))
        for each in one.columns
    ]
    head = ("Column", "Type", "NULL", "Meaning")
    if not one.measures:
        return "\n\n".join([*lines, table(head, rows)])
    over = [(*row, each.over) for row, each in zip(rows, one.columns, strict=True)]
    return "\n\n".join([*lines, table((*head, "Over time"), over)])
