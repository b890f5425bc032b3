"""Gold's tables: creation, missing columns, and tidying once a day."""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.engines import replace_where
from lakehouse.engines.engine import Engine
from lakehouse.errors import TableNotFoundError, TableSchemaError

EVERY: Final[tuple[tables.Table, ...]] = (*tables.GOLD, *tables.ROLLUP_STATE)
"""All tables below gold, but an engine's scratch tables."""

KEEP_WINDOWS_DAYS: Final = 100


def check_bronze(engine: Engine, *wanted: tables.Table) -> None:
    """Check that tables of bronze exist with the columns that this version of jmxlake reads.

    Raises:
        TableNotFoundError: A table is not there.
        TableSchemaError: A table lacks a column, or has it with another type.
    """
    for table in wanted:
        found = engine.schema(table)
        if found is None:
            raise TableNotFoundError(f"{engine.lake.name(table)}: no such table; agents make it")
        every = dict.fromkeys(table.column_names, "missing") | dict(found)
        if wrong := _wrong_types(table, every):
            raise TableSchemaError(
                f"{engine.lake.name(table)}: {wrong}; another version of jmxlake made "
                "it, or it is no table of jmxlake"
            )


def schemas(engine: Engine) -> dict[tables.Table, Mapping[str, str] | None]:
    """Names and types of the columns of every table of gold; None for one that is missing."""
    with ThreadPoolExecutor(engine.at_once) as pool:
        return dict(zip(EVERY, pool.map(engine.schema, EVERY), strict=True))


def is_outdated(lake: Lake, table: tables.Table, found: Mapping[str, str] | None) -> bool:
    """Whether a table of gold is missing, or lacks columns of this version.

    Raises:
        TableSchemaError: It has a column of another type, or one that this version does not know.
    """
    if found is None:
        return True
    name = lake.name(table)
    unknown = sorted(found.keys() - set(table.column_names))
    missing = [column for column in table.column_names if column not in found]
    if unknown and missing:
        raise TableSchemaError(
            f"{name}: it has the column {unknown[0]} and lacks {missing[0]}: it is no table of "
            "jmxlake; give gold a schema of its own"
        )
    if unknown:
        newer = f"this jmxlake does not know the column {unknown[0]}; a newer one made it: use that"
        raise TableSchemaError(f"{name}: {newer}")
    if wrong := _wrong_types(table, found):
        raise TableSchemaError(f"{name}: {wrong}; it is no table of jmxlake")
    return bool(missing)


def _wrong_types(table: tables.Table, types: Mapping[str, str]) -> str:
    return "; ".join(
        f"{column.name} is {types[column.name]}, not {column.type}"
        for column in table.columns
        if types.get(column.name, column.type.lower()) != column.type.lower()
    )


def prepare(engine: Engine, table: tables.Table) -> str:
    """Create a table of gold or add the columns it lacks; returns a line that says which."""
    there = engine.schema(table)
    if there is None:
        engine.create(table)
        return f"new table {table.name}"
    missing = [column for column in table.columns if column.name not in there]
    if missing:
        engine.add_columns(table, missing)
    return f"new columns of {table.name}: {', '.join(column.name for column in missing)}"


def prepare_all(engine: Engine, outdated: Sequence[tables.Table]) -> Iterator[str]:
    """Prepare tables, several at once; yields a line for each."""
    with ThreadPoolExecutor(engine.at_once) as pool:
        yield from pool.map(lambda table: prepare(engine, table), outdated)


def horizon(committed: dt.datetime, keep_windows_days: int) -> dt.date:
    """The date from which on gold keeps the finest rows, by bronze's newest commit."""
    return (committed - dt.timedelta(days=keep_windows_days)).date()


def tidy(
    engine: Engine, horizon: dt.date, check: Callable[[], None], step: Callable[[str], None]
) -> None:
    """Remove old finest rows, put small files together and delete those that are not needed.

    A kill leaves a table as it was, and files that the next vacuum takes.

    Args:
        engine: The engine.
        horizon: The date from which on finest rows are kept.
        check: Called before each commit; raises where no more may be made.
        step: Called with what was done.
    """

    def tidy_one(table: tables.Table) -> None:
        if table not in engine.scratch and not engine.commits(table, 1)[0].number:
            return  # nothing was ever written to it
        check()
        if table in tables.EXPIRING:
            engine.delete(table, replace_where.before(horizon))
        engine.tidy(table)
        step(f"tidied {table.name}")

    with ThreadPoolExecutor(engine.at_once) as pool:
        list(pool.map(tidy_one, (*EVERY, *engine.scratch)))
