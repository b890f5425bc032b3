"""The reference of tables, from the declarations that agents and rollups write by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from docs.tools.layout import code, page, prose, table
from lakehouse.tables import BRONZE, CONDENSED, GOLD, ROLLUP_STATE

if TYPE_CHECKING:
    from lakehouse.tables import Table

ALL: Final = (*BRONZE, *GOLD, *ROLLUP_STATE, CONDENSED)
"""Every table of a lake."""

_INTRODUCTION: Final = """\
A lake is a folder or a bucket's prefix with Delta tables below `bronze/` and `gold/`. Agents append
to bronze, and nobody else may but the maintenance; rollups make gold of it. Types are as Spark SQL
spells them. Durations are whole microseconds (`_us`), instants are UTC. NULL is never zero: it is
idle, or not known, as the column says. The same comments stand in the tables themselves
(`DESCRIBE TABLE EXTENDED`).

Gold's rows are of several *grains* at once, the finest (5 minutes by default), `1h`, `1d` and `1w`:
choose one, or the same time is counted four times. A row `_low_us` or `_high_us` is a bound of what
is without it."""

_LAYERS: Final = {
    "bronze": "## Bronze\n\nWhat agents saw, as runs. Frozen: another version is another table.",
    "gold": "## Gold\n\nWhat rollups make of it, and how they run.",
}


def text() -> str:
    """The page."""
    parts = []
    for layer, head in _LAYERS.items():
        parts += [head, *(_table(one) for one in ALL if one.layer == layer)]
    return page("Tables", _INTRODUCTION, *parts)


def _table(one: Table) -> str:
    lines = [f"### {one.path}", f"{prose(one.comment)}."]
    if one.partition_by:
        lines.append(f"Partitioned by {', '.join(map(code, one.partition_by))}.")
    rows = [
        (code(each.name), code(each.type), "" if each.nullable else "never", prose(each.comment))
        for each in one.columns
    ]
    return "\n\n".join([*lines, table(("Column", "Type", "NULL", "Meaning"), rows)])
