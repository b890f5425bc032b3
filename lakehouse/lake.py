"""A lake: where its tables are, whether they are what they should be, and their versions."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.errors import AnalysisException

from lakehouse import tables
from lakehouse.errors import LakeNotFoundError, TableNotFoundError, TableSchemaError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakehouse.tables import Table

_MISSING: Final = ("NOT_FOUND", "MISSING_DELTA_TABLE", "DOES_NOT_EXIST", "MISSING_TRANSACTION_LOG")


class Version(NamedTuple):
    """A committed version of a table."""

    number: int
    committed: dt.datetime


@dataclass(frozen=True, slots=True)
class Lake:
    """Where the tables are.

    Attributes:
        root: Path or URI of the lake; bronze lies below it.
        gold: ``catalog.schema`` of gold, or None where gold lies below the root as well.
    """

    root: str
    gold: str | None = None

    def name(self, table: Table) -> str:
        """The table's name in Spark SQL."""
        if table.layer == "gold" and self.gold is not None:
            return f"{self.gold}.{table.name}"
        path = f"{self.root.rstrip('/')}/{table.path}".replace("`", "``")
        return f"delta.`{path}`"


def at(place: str, gold: str | None = None) -> Lake:
    """The lake at a path or URI.

    Raises:
        LakeNotFoundError: It is a local path at which there is no lake.
    """
    if "://" in place:
        return Lake(place, gold)
    root = Path(place).resolve()
    if not root.is_dir():
        raise LakeNotFoundError(f"{place}: no such folder; give the lake that the agents write to")
    if not (root / tables.RUNS.path / "_delta_log").is_dir():
        raise LakeNotFoundError(f"{place}: no table bronze/runs there; has an agent delivered yet?")
    return Lake(str(root), gold)


def read(spark: SparkSession, lake: Lake, table: Table, version: int | None = None) -> DataFrame:
    """A table, as it is now or as of a version.

    Raises:
        TableNotFoundError: It is not there.
    """
    as_of = "" if version is None else f" VERSION AS OF {version:d}"
    try:
        return spark.sql(f"SELECT * FROM {lake.name(table)}{as_of}")  # noqa: S608 - no outside text
    except AnalysisException as error:
        if any(word in (error.getCondition() or "") for word in _MISSING):
            raise TableNotFoundError(
                f"{lake.name(table)}: no such table; "
                + ("run jmxlake rollup first" if table.layer == "gold" else "agents make it")
            ) from error
        raise


def exists(spark: SparkSession, lake: Lake, table: Table) -> bool:
    """Whether a table is there."""
    try:
        read(spark, lake, table)
    except TableNotFoundError:
        return False
    return True


def inserts(
    spark: SparkSession, lake: Lake, table: Table, first: int, last: int
) -> DataFrame | None:
    """Rows inserted by the versions ``first`` to ``last``; None where there is no such version."""
    if first > last:
        return None
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", first)
    changes = feed.option("endingVersion", last).table(lake.name(table))
    return changes.where("_change_type = 'insert'")


def latest(spark: SparkSession, lake: Lake, table: Table) -> Version:
    """The newest version of a table."""
    row = spark.sql(f"DESCRIBE HISTORY {lake.name(table)} LIMIT 1").collect()[0]
    # Spark gives naive datetimes of the host's zone.
    return Version(row["version"], row["timestamp"].astimezone(dt.UTC))


def check(spark: SparkSession, lake: Lake, *wanted: Table) -> None:
    """See that tables are there with the columns that this version of jmxlake knows.

    Raises:
        TableNotFoundError: A table is not there.
        TableSchemaError: A table lacks a column, or has it with another type.
    """
    for table in wanted:
        found = {
            field.name: field.dataType.simpleString() for field in read(spark, lake, table).schema
        }
        wrong = [
            f"{column.name} is {found.get(column.name, 'missing')}, not {column.type}"
            for column in table.columns
            if found.get(column.name) != column.type.lower()
        ]
        if wrong:
            raise TableSchemaError(
                f"{lake.name(table)}: {'; '.join(wrong)}; another version of jmxlake made it, "
                "or it is no table of jmxlake"
            )


def create(spark: SparkSession, lake: Lake, table: Table) -> None:
    """Create a table of gold with its comments, if it is not there."""
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in table.properties.items())
    by = ", ".join(f"`{name}`" for name in table.partition_by)
    comment = table.comment.replace("'", "''")
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {lake.name(table)} ({table.ddl}) USING delta"
        + (f" PARTITIONED BY ({by})" if by else "")
        + f" COMMENT '{comment}' TBLPROPERTIES ({properties})"
    )


def replace(lake: Lake, table: Table, rows: DataFrame, where: str) -> None:
    """Replace the rows that a predicate names by others, in one commit."""
    shaped = rows.select(*(f"`{name}`" for name in table.column_names))
    writer = shaped.coalesce(1).write.format("delta").mode("overwrite")
    writer.option("replaceWhere", where).saveAsTable(lake.name(table))


def append(lake: Lake, table: Table, rows: DataFrame) -> None:
    """Append rows in one commit."""
    shaped = rows.select(*(f"`{name}`" for name in table.column_names))
    shaped.coalesce(1).write.format("delta").mode("append").saveAsTable(lake.name(table))
