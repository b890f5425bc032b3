"""Registration of bronze and control as external tables of a catalog, with Spark."""

from pyspark.sql import SparkSession

from lakehouse import tables
from lakehouse.core.lake import Lake
from lakehouse.engines.spark_relations import table_of
from lakehouse.errors import LakeReplacedError, TableNotFoundError
from lakehouse.tables.table import spark_text


def register(spark: SparkSession, root: str, bronze: str) -> list[str]:
    """Register bronze and control in a catalog; existing registrations do not change.

    It does not write to the tables, so a read-only credential is enough. It skips missing tables
    except runs: agents might not have events yet, older agents do not write definitions, and few
    lakes have a table of watched groups.

    Args:
        spark: The session.
        root: Path or URI of the lake.
        bronze: An existing ``catalog.schema``.

    Returns:
        The tables' names in Spark SQL.

    Raises:
        TableNotFoundError: bronze/runs does not exist. Agents create it.
        LakeReplacedError: A name refers to a table at another location.
    """
    lake, names = Lake(root, bronze=bronze), []
    for table in (*tables.BRONZE, *tables.CATALOGUES, *tables.CONTROL):
        try:
            names.append(_register(spark, lake, table))
        except TableNotFoundError:
            if table is tables.RUNS:
                raise
    return names


def _register(spark: SparkSession, lake: Lake, table: tables.Table) -> str:
    name, wanted = lake.name(table), f"{lake.root.rstrip('/')}/{table.path}"
    try:
        # Delta without its own catalog would create an empty table at a missing location.
        table_of(spark, Lake(lake.root), table)
        spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION {spark_text(wanted)}")
        found = spark.sql(f"DESCRIBE DETAIL {name}").select("location").collect()[0]["location"]
    except TableNotFoundError:
        raise TableNotFoundError(f"{wanted}: no table. Check that an agent has delivered") from None
    if found.removeprefix("file:").rstrip("/") != wanted.removeprefix("file:").rstrip("/"):
        raise LakeReplacedError(
            f"{name} is registered at {found}, not at {wanted}. If the lake has moved, drop "
            "the table (its files stay) and register again"
        )
    return name
