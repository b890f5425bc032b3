"""Schemas of tables: checks for bronze, creation and missing columns for gold."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lakehouse import tables
from lakehouse.core import display, missing_files, older_gold
from lakehouse.core.lake import Lake
from lakehouse.engines.engine import Detail, Engine
from lakehouse.errors import TableSchemaError
from lakehouse.tables import Table

EVERY: Final[tuple[Table, ...]] = (*tables.GOLD, *tables.ROLLUP_STATE)
"""All tables below gold, except an engine's scratch tables."""


def check_bronze(lake: Lake, found: Mapping[Table, Detail | None]) -> None:
    """Check that tables of bronze exist with the columns that this version reads.

    Args:
        lake: The lake.
        found: Metadata of the tables.

    Raises:
        TableNotFoundError: A table does not exist.
        TableSchemaError: A column is missing or has another type.
    """
    for table, detail in found.items():
        if detail is None:
            raise missing_files.no_table(table, lake.name(table))
        every = dict.fromkeys(table.column_names, "missing") | dict(detail.columns)
        older_gold.check_types(table, every, lake.name(table))


def is_outdated(lake: Lake, table: Table, detail: Detail | None) -> bool:
    """Return True if a table of gold does not exist, or lacks columns of this version.

    Undeclared columns are ignored; this version's rows have null there.

    Raises:
        TableSchemaError: A column has another type, or the table is not a table of jmxlake.
    """
    if detail is None:
        return True
    name, found = lake.name(table), detail.columns
    unknown = table.undeclared(found)
    missing = [column for column in table.columns if column.name not in found]
    # A table of an older version has all columns that are required.
    foreign = next((column.name for column in missing if not column.nullable), None)
    if unknown and foreign:
        raise TableSchemaError(
            f"{name}: not a table of jmxlake, because it has the column {display.line(unknown[0])} "
            f"and lacks {foreign}. Use a separate schema for gold"
        )
    older_gold.check_types(table, found, name)
    return bool(missing)


def prepare(engine: Engine, table: Table) -> str:
    """Create a table of gold or add its missing columns, and return a line about it."""
    before = engine.define(table)
    if before is None:
        return f"new table {table.name}"
    added = [name for name in table.column_names if name not in before.columns]
    return f"new columns of {table.name}: {', '.join(added)}"


def prepare_all(engine: Engine, outdated: Sequence[Table]) -> Iterator[str]:
    """Prepare tables, several at the same time, and yield a line for each."""
    with ThreadPoolExecutor(engine.at_once) as pool:
        yield from pool.map(lambda table: prepare(engine, table), outdated)
