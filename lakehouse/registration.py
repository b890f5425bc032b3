"""Bronze under names: external tables of a catalog over what the agents write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakehouse import lake as lakes
from lakehouse import tables
from lakehouse.errors import LakeReplacedError, TableNotFoundError
from lakehouse.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession, root: str, bronze: str) -> list[str]:
    """Give the agents' tables names; those that have them already stay as they are.

    Nothing is written where the tables lie, so a credential that may only read is enough.

    Args:
        spark: The session.
        root: Path or URI of the lake.
        bronze: ``catalog.schema``, which must be there.

    Returns:
        The tables' names in Spark SQL.

    Raises:
        TableNotFoundError: A table is not there; agents make them.
        LakeReplacedError: A name belongs to a table at another place.
    """
    lake = Lake(root, bronze=bronze)
    return [_register(spark, lake, table) for table in tables.BRONZE]


def _register(spark: SparkSession, lake: Lake, table: tables.Table) -> str:
    name, wanted = lake.name(table), f"{lake.root.rstrip('/')}/{table.path}"
    literal = wanted.replace("\\", "\\\\").replace("'", "\\'")
    try:
        # Delta without a catalog of its own would make an empty table where there is none.
        lakes.read(spark, Lake(lake.root), table)
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{literal}'")
        found = spark.sql(f"DESCRIBE DETAIL {name}").select("location").collect()[0]["location"]
    except TableNotFoundError:
        raise TableNotFoundError(f"{wanted}: no table there; has an agent delivered yet?") from None
    if found.removeprefix("file:").rstrip("/") != wanted.removeprefix("file:").rstrip("/"):
        raise LakeReplacedError(
            f"{name}: it is registered at {found}, not at {wanted}; if the lake has moved, drop "
            "the table (its files stay) and register again"
        )
    return name
