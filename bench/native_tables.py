"""Gold's topics and clients by native Spark SQL: ``python -m bench.native_tables LAKE OUT``.

The statements are in ``native.sql``. Rows are sums of ``finest``, per window and per hour, by the
columns of the tables. The process prints the seconds after Spark's start as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakehouse import tables
from lakehouse.core import metrics
from lakehouse.tables.table import spark_identifier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakehouse.tables import Column, Table

COMPUTED: Final = (tables.TOPICS, tables.CLIENTS)
WINDOW_US: Final = tables.DEFAULT_WINDOW_SECONDS * 1_000_000
_HOUR: Final = "w - w % 3600000000"
_STATEMENTS: Final = Path(__file__).with_name("native.sql")
_SPARK: Final = {
    "spark.driver.memory": "4g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",  # two cores
    "spark.sql.files.maxPartitionBytes": "4m",  # two bytes a run: otherwise one task reads them all
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_AGGREGATES: Final = {"sum": "sum", "max": "max", "min": "min", "any": "bool_or"}


def compute(spark: SparkSession, lake: Path, out: Path) -> None:
    """Write the four tables as Parquet below ``out``.

    Args:
        spark: A session whose warehouse is empty.
        lake: Lake with bronze.
        out: Folder; it is created.
    """
    for table in (tables.RUNS, tables.MEMBERS):
        files = DeltaTable(str(lake / table.path)).file_uris()
        read = spark.read.option("basePath", str(lake / table.path)).parquet(*files)
        read.createOrReplaceTempView(table.name)
    traits = metrics.shipped_meanings().traits
    unmeasured = [name for name, one in traits.items() if one.describes or one.is_position]
    of_replicas = [name for name, one in traits.items() if one.by_replicas]
    spark.sql(f"DECLARE window_us = {WINDOW_US}L")
    for name, own in (("unmeasured", unmeasured), ("of_replicas", of_replicas)):
        listed = ", ".join(f"'{metric}'" for metric in sorted(own))
        spark.sql(f"DECLARE {name} = array({listed})")
    for statement in _statements():
        spark.sql(statement)
    for table in COMPUTED:
        for name, place in ((table.name, _HOUR), (f"{table.name}_windows", "w")):
            spark.sql(_summed(table, place)).write.parquet(str(out / name))


def _statements() -> Iterator[str]:
    for statement in _STATEMENTS.read_text("utf-8").split(";\n"):
        if statement.strip():
            yield statement


def _summed(table: Table, place: str) -> str:
    """Return the query of a table's rows, with ``w`` (microseconds) instead of date and window."""
    keys = ", ".join(spark_identifier(name) for name in table.keys)
    own = "topic IS NULL" if table is tables.CLIENTS else "topic IS NOT NULL"
    sums = (column for column in table.measures if column.over != "mean")
    summed = ", ".join(f"{_over(column, place)} AS {column.name}" for column in sums)
    figures = ", ".join(map(_final, table.measures))
    parts = ["SELECT", place, "AS w,", keys, ",", summed, "FROM finest WHERE", own]
    grouped = " ".join([*parts, "GROUP BY", place, ",", keys])
    return " ".join(["SELECT w,", keys, ",", figures, "FROM (", grouped, ")"])


def _over(column: Column, place: str) -> str:
    if column.over != "first":
        return f"{_AGGREGATES[column.over]}({column.name})"
    if place == "w":
        return f"max({column.name})"
    first = f"coalesce(max({column.name}) FILTER (WHERE w = {_HOUR}), 0)"
    return f"CASE WHEN count({column.name}) > 0 THEN {first} END"


def _final(column: Column) -> str:
    if column.over == "mean":
        mean = "CAST(value_seconds AS DOUBLE) / (CAST(series_seen_us AS DOUBLE) / 1e6D)"
        return f"CASE WHEN series_seen_us > 0 THEN {mean} END AS {column.name}"
    return f"CAST({column.name} AS {column.type}) AS {column.name}"


def main() -> int:
    """Compute, in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake", type=Path, help="a lake with bronze")
    parser.add_argument("out", type=Path, help="folder for the rows and for Spark's own tables")
    chosen = parser.parse_args()
    builder = SparkSession.builder.master("local[2]")
    warehouse = str(chosen.out / "warehouse")
    spark = builder.config(map={**_SPARK, "spark.sql.warehouse.dir": warehouse}).getOrCreate()
    spark.sql("SELECT 1").collect()
    began = time.monotonic()
    compute(spark, chosen.lake, chosen.out)
    print(json.dumps({"seconds": time.monotonic() - began}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
