"""Gold as another engine than Spark reads it: delta-rs, by the tables' paths alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable, QueryBuilder

from lakehouse import tables

if TYPE_CHECKING:
    from pathlib import Path

OF_BRONZE_ALONE = [one for one in tables.GOLD if one.start]
"""Tables whose rows follow from bronze alone: equal whoever rolled up, and when."""


def gold_rows(
    gold: Path | str, options: dict[str, str] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Every row of those tables and of subjects, in an order of their own."""
    wanted = [*OF_BRONZE_ALONE, tables.SUBJECTS]
    return {one.name: rows(f"{gold}/{one.name}", options) for one in wanted}


def rows(table: str, options: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The rows of a table, sorted by what they say."""
    delta = DeltaTable(table, storage_options=options)
    found = QueryBuilder().register("told", delta).execute("SELECT * FROM told").read_all()
    names = sorted(found.column_names)
    columns = (found.column(name).to_pylist() for name in names)
    told = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return sorted(told, key=repr)


def differing(
    found: dict[str, list[dict[str, Any]]], wanted: dict[str, list[dict[str, Any]]]
) -> dict[str, tuple[list[str], list[str]]]:
    """Tables that differ, each with some rows that are too many and some that are missing."""
    told = {}
    for name in found.keys() | wanted.keys():
        here, there = (Counter(map(repr, rows.get(name, ()))) for rows in (found, wanted))
        if here != there:
            told[name] = tuple([*difference][:3] for difference in (here - there, there - here))
    return told
