"""Registers the agents' tables as external tables of a catalog, by Spark."""

from pyspark.sql import SparkSession

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.engines.spark_relations import table_of
from lakehouse.errors import LakeReplacedError, TableNotFoundError
from lakehouse.tables.table import spark_text


def register(spark: SparkSession, root: str, bronze: str) -> list[str]:
    """Register the agents' tables in a catalog; tables that are registered stay as they are.

    Nothing is written to the tables, so a read-only credential is enough. Tables that are not there
    are left out, but for runs: agents may have no events yet, and older ones make no definitions.

    Args:
        spark: The session.
        root: Path or URI of the lake.
        bronze: ``catalog.schema``, which must be there.

    Returns:
        The tables' names in Spark SQL.

    Raises:
        TableNotFoundError: bronze/runs is not there; agents make it.
        LakeReplacedError: A name belongs to a table at another place.
    """
    lake, names = Lake(root, bronze=bronze), []
    for table in (*tables.BRONZE, *tables.CATALOGUES):
        try:
            names.append(_register(spark, lake, table))
        except TableNotFoundError:
            if table is tables.RUNS:
                raise
    return names


def _register(spark: SparkSession, lake: Lake, table: tables.Table) -> str:
    name, wanted = lake.name(table), f"{lake.root.rstrip('/')}/{table.path}"
    try:
        # Delta without a catalog of its own would make an empty table where there is none.
        table_of(spark, Lake(lake.root), table)
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {spark_text(wanted)}")
        found = spark.sql(f"DESCRIBE DETAIL {name}").select("location").collect()[0]["location"]
    except TableNotFoundError:
        raise TableNotFoundError(f"{wanted}: no table there; has an agent delivered yet?") from None
    if found.removeprefix("file:").rstrip("/") != wanted.removeprefix("file:").rstrip("/"):
        raise LakeReplacedError(
            f"{name}: it is registered at {found}, not at {wanted}; if the lake has moved, drop "
            "the table (its files stay) and register again"
        )
    return name
