"""Tables of a rollup: checks of bronze; creation, missing columns and daily maintenance of gold."""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lakehouse import tables
from lakehouse.core import display, missing_files, older_gold
from lakehouse.core.lake import Lake
from lakehouse.engines.engine import Detail, Engine
from lakehouse.engines.relation import before_date
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


KEEP_WINDOWS_DAYS: Final = 100


def horizon(committed: dt.datetime, keep_windows_days: int) -> dt.date:
    """Return the first date whose 5-minute rows gold keeps, from the newest commit to bronze."""
    return (committed - dt.timedelta(days=keep_windows_days)).date()


def tidy(
    engine: Engine, horizon: dt.date, check: Callable[[], None], step: Callable[[str], None]
) -> None:
    """Delete old 5-minute rows, compact small files, and delete unused files.

    After a kill the table is unchanged, and the next vacuum deletes new files.

    Args:
        engine: The engine.
        horizon: First date whose 5-minute rows are kept.
        check: Called before each commit; raises if the lease is lost.
        step: Receives each completed step.
    """

    def tidy_one(table: tables.Table) -> None:
        if table not in engine.scratch and not engine.commits(table, 1)[0].number:
            return  # an empty table
        check()
        if table in tables.EXPIRING:
            engine.write(table, None, before_date(horizon))
        engine.tidy(table)
        step(f"tidied {table.name}")

    with ThreadPoolExecutor(engine.at_once) as pool:
        list(pool.map(tidy_one, (*EVERY, *engine.scratch)))
