"""``jmxlake views`` and ``jmxlake register``: names in a catalog for gold and bronze."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from lakehouse import tables
from lakehouse.cli.options import LAKE, log
from lakehouse.core import periods
from lakehouse.core.lake import Lake, at
from lakehouse.core.spark_session import session
from lakehouse.ops.views import render

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

    Prints the SQL unless --run is set. LAKE is the folder or URL of a lake, or the CATALOG.SCHEMA
    of gold.
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
    from lakehouse.ops.register import register as register_tables  # it imports Spark

    for name in register_tables(spark, location.root, bronze):
        click.echo(name)
