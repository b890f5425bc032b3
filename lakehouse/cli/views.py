"""``jmxlake views`` and ``jmxlake register``: names in a catalog for gold and bronze."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lakehouse import tables
from lakehouse.cli.options import LAKE, log
from lakehouse.core import periods
from lakehouse.core.lake import Lake, at
from lakehouse.core.spark_session import session
from lakehouse.errors import LakeReplacedError, TableNotFoundError
from lakehouse.ops.views import render
from lakehouse.tables.table import spark_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

_SCHEMA: Final = re.compile(r"[\w-]+(\.[\w-]+)?")


@click.command
@click.argument("gold", metavar="LAKE")
@click.option(
    "--dialect", required=True, type=click.Choice(list(render.DIALECTS)),
    help="SQL dialect. databricks is spark plus Unity Catalog keys and tags.",
)  # fmt: skip
@click.option(
    "--schema", default="kafka", show_default=True, metavar="[CATALOG.]SCHEMA",
    help="Schema for the views.",
)  # fmt: skip
@click.option(
    "--time-zone", default=periods.UTC_NAME, show_default=True, metavar="ZONE",
    help="Time zone of local timestamps, such as Europe/Berlin.",
)  # fmt: skip
@click.option(
    "--run", "is_run", is_flag=True,
    help="Execute the SQL with Spark instead of printing it (without keys and tags).",
)  # fmt: skip
@click.option(
    "--metric-views", "measures", is_flag=True,
    help="Also create metric views: measures for any choice of dimensions (spark from 4.2, "
    "databricks).",
)  # fmt: skip
def views(
    gold: str, dialect: str, schema: str, time_zone: str, *, is_run: bool, measures: bool
) -> None:
    """Create SQL views of gold with readable names and units.

    It prints the SQL unless --run is set. LAKE is the folder or URL of a lake, or the
    CATALOG.SCHEMA of gold.
    """
    periods.time_zone(time_zone)
    if not _SCHEMA.fullmatch(schema):
        raise click.UsageError(f"--schema {schema!r}: use SCHEMA or CATALOG.SCHEMA")
    if schema == gold:  # some views have the name of a table
        raise click.UsageError(f"--schema {schema}: gold is in this schema. Use another schema")
    chosen = render.DIALECTS[dialect]
    if measures and not chosen.comments_inline:
        raise click.UsageError(f"--metric-views: {dialect} does not have them. Omit the option")
    show: Callable[[str], object] = lambda statement: click.echo(f"{statement};\n")  # noqa: E731
    if is_run:
        if not chosen.comments_inline:
            raise click.UsageError(f"--run: Spark does not run {dialect}. Omit --run")
        chosen, show = replace(chosen, constraints=False), session().sql
    place = _place(gold, chosen)
    for statement in render.statements(chosen, schema, place, time_zone, measures=measures):
        show(statement)


def _place(gold: str, dialect: render.Dialect) -> Callable[[tables.Table], str]:
    """Return a function that returns the SQL name of a gold table.

    Raises:
        click.UsageError: The dialect does not support paths.
        LakehouseError: The lake or a table does not exist.
    """
    if "." in gold and _SCHEMA.fullmatch(gold) and not Path(gold).is_dir():
        lake = Lake("", gold)
        return lambda table: dialect.name(*str(lake.schema_of(table)).split("."), table.name)
    if not dialect.path:
        raise click.UsageError(f"{gold}: use the CATALOG.SCHEMA of gold")
    from lakehouse.core.delta_rs import locate  # Databricks does not have delta-rs

    location = locate(gold, None)
    for table in tables.GOLD if "://" not in gold else ():
        location.open(table)

    def place(table: tables.Table) -> str:
        url = location.url(table)
        return dialect.path.format(dialect.text(url), dialect.name(url))

    return place


@click.command
@LAKE
@click.option(
    "--bronze", metavar="CATALOG.SCHEMA", required=True,
    help="Existing schema for the table names.",
)  # fmt: skip
def register(lake: str, bronze: str) -> None:
    """Register bronze tables in a catalog.

    They become external tables. Existing names and LAKE do not change.
    """
    from lakehouse.engines.choice import start_spark

    location, spark = at(lake), start_spark(log)
    for name in register_tables(spark, location.root, bronze):
        click.echo(name)


def register_tables(spark: SparkSession, root: str, bronze: str) -> list[str]:
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
            names.append(_registered(spark, lake, table))
        except TableNotFoundError:
            if table is tables.RUNS:
                raise
    return names


def _registered(spark: SparkSession, lake: Lake, table: tables.Table) -> str:
    from lakehouse.engines.spark_relations import table_of  # other commands work without Spark

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
