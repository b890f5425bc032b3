"""Gold's tables: made where they are missing, brought up to date, and tidied once a day."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from lakehouse import lake as lakes
from lakehouse import tables
from lakehouse.errors import TableNotFoundError, TableSchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake
    from lakehouse.tables import Table

AT_ONCE: Final = 2
"""Tables of gold that are made or written at once: none depends on another, and planning one leaves
a core idle."""


def is_outdated(spark: SparkSession, lake: Lake, table: Table) -> bool:
    """Whether a table of gold is to be made, or lacks columns that came with a later version.

    Raises:
        TableSchemaError: It has a column of another type, or one that this version does not know.
    """
    try:
        schema = lakes.read(spark, lake, table).schema
    except TableNotFoundError:
        return True
    found = {field.name: field.dataType.simpleString() for field in schema}
    unknown = sorted(found.keys() - set(table.column_names))
    if unknown:
        raise TableSchemaError(
            f"{lake.name(table)}: this jmxlake does not know the column {unknown[0]}; a newer one "
            "made it: use that"
        )
    wrong = [
        f"{column.name} is {found[column.name]}, not {column.type}"
        for column in table.columns
        if column.name in found and found[column.name] != column.type.lower()
    ]
    if wrong:
        raise TableSchemaError(f"{lake.name(table)}: {'; '.join(wrong)}; it is no table of jmxlake")
    return len(found) < len(table.columns)


def prepare(spark: SparkSession, lake: Lake, table: Table) -> str:
    """Make a table of gold that is not there, or add the columns it lacks; says what was done."""
    if not lakes.exists(spark, lake, table):
        lakes.create(spark, lake, table)
        return f"new table {table.name}"
    there = lakes.read(spark, lake, table).columns
    missing = [column for column in table.columns if column.name not in there]
    if missing:
        # One that comes later cannot be NOT NULL: the rows that are there have no value.
        added = ", ".join(column.ddl.replace(" NOT NULL", "") for column in missing)
        spark.sql(f"ALTER TABLE {lake.name(table)} ADD COLUMNS ({added})")
    return f"new columns of {table.name}: {', '.join(column.name for column in missing)}"


def prepare_all(spark: SparkSession, lake: Lake, outdated: Sequence[Table]) -> Iterator[str]:
    """Prepare tables, some at once; tells what was done with each."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(lambda table: prepare(spark, lake, table), outdated)


def tidy(
    spark: SparkSession, lake: Lake, check: Callable[[], None], step: Callable[[str], None]
) -> None:
    """Put small files together and delete those that nobody needs.

    A kill leaves a table as it was, and files that the next vacuum takes.
    """
    large = (tables.CONDENSED,) if lakes.exists(spark, lake, tables.CONDENSED) else ()
    for table in (*EVERY, *large):
        check()
        name = lake.name(table)
        properties = ", ".join(f"'{key}' = '{value}'" for key, value in table.properties.items())
        if _differ(spark, lake, table):
            spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({properties})")
        spark.sql(f"OPTIMIZE {name}").collect()
        spark.sql(f"VACUUM {name}").collect()
        step(f"tidied {table.name}")


def _differ(spark: SparkSession, lake: Lake, table: Table) -> bool:
    (row,) = spark.sql(f"DESCRIBE DETAIL {lake.name(table)}").select("properties").collect()
    found = row["properties"] or {}
    return any(found.get(key) != value for key, value in table.properties.items())


EVERY: Final[tuple[Table, ...]] = (*tables.GOLD, *tables.ROLLUP_STATE)
"""All tables below gold, but what only a large rollup makes."""
