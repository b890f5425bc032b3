"""Schemas of the tables: bronze's are checked, gold's are created or completed."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lakehouse import tables
from lakehouse.core import display, missing_files
from lakehouse.core.lake import Lake
from lakehouse.engines.engine import Detail, Engine
from lakehouse.errors import TableSchemaError
from lakehouse.tables import Table

EVERY: Final[tuple[Table, ...]] = (*tables.GOLD, *tables.ROLLUP_STATE)
"""All tables below gold, but an engine's scratch tables."""


def check_bronze(lake: Lake, found: Mapping[Table, Detail | None]) -> None:
    """Check that tables of bronze exist with the columns that this version of jmxlake reads.

    Args:
        lake: The lake.
        found: The tables' metadata.

    Raises:
        TableNotFoundError: A table is not there.
        TableSchemaError: A table lacks a column, or has it with another type.
    """
    for table, detail in found.items():
        if detail is None:
            raise missing_files.no_table(table, lake.name(table))
        every = dict.fromkeys(table.column_names, "missing") | dict(detail.columns)
        if wrong := table.wrong_types(every):
            raise TableSchemaError(
                f"{lake.name(table)}: {_listed(wrong)}; another version of jmxlake made it, or it "
                "is no table of jmxlake"
            )


def is_outdated(lake: Lake, table: Table, detail: Detail | None) -> bool:
    """Whether a table of gold is missing, or lacks columns of this version.

    Columns that this version does not declare are ignored: rows that it writes have null there.

    Raises:
        TableSchemaError: It has a column of another type, or is not a table of jmxlake.
    """
    if detail is None:
        return True
    name, found = lake.name(table), detail.columns
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
    before = engine.define(table)
    if before is None:
        return f"new table {table.name}"
    added = [name for name in table.column_names if name not in before.columns]
    return f"new columns of {table.name}: {', '.join(added)}"


def prepare_all(engine: Engine, outdated: Sequence[Table]) -> Iterator[str]:
    """Prepare tables, several at once; yields a line for each."""
    with ThreadPoolExecutor(engine.at_once) as pool:
        yield from pool.map(lambda table: prepare(engine, table), outdated)
