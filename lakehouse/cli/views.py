"""``jmxlake views``: gold as views of SQL."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from lakehouse import tables
from lakehouse.core import periods
from lakehouse.core.lake import Lake
from lakehouse.core.spark_session import session
from lakehouse.ops.views import render

_SCHEMA: Final = re.compile(r"[\w-]+(\.[\w-]+)?")


@click.command
@click.argument("gold", metavar="LAKE")
@click.option(
    "--dialect", required=True, type=click.Choice(list(render.DIALECTS)),
    help="Of which engine; databricks is Spark's with keys and tags of Unity Catalog.",
)  # fmt: skip
@click.option(
    "--schema", default="kafka", show_default=True, metavar="[CATALOG.]SCHEMA",
    help="Schema in which the views are created.",
)  # fmt: skip
@click.option(
    "--time-zone", default=periods.UTC_NAME, show_default=True, metavar="ZONE",
    help="Time zone of local instants, such as Europe/Berlin.",
)  # fmt: skip
@click.option(
    "--run", "is_run", is_flag=True, help="Run the SQL by Spark, but for keys and tags, not print."
)
def views(gold: str, dialect: str, schema: str, time_zone: str, *, is_run: bool) -> None:
    """Print SQL that creates views of LAKE's gold in readable names and units.

    LAKE is the folder or URL of a lake, or the CATALOG.SCHEMA in which gold's tables have names.
    """
    periods.time_zone(time_zone)
    if not _SCHEMA.fullmatch(schema):
        raise click.UsageError(f"--schema {schema!r}: give a schema, or catalog.schema")
    chosen = render.DIALECTS[dialect]
    show: Callable[[str], object] = lambda one: click.echo(f"{one};\n")  # noqa: E731
    if is_run:
        if not chosen.comments_inline:
            raise click.UsageError(f"--run: {dialect} is not Spark's; print it and run it there")
        chosen, show = replace(chosen, constraints=False), session().sql
    for one in render.statements(chosen, schema, _place(gold, chosen), time_zone):
        show(one)


def _place(gold: str, dialect: render.Dialect) -> Callable[[tables.Table], str]:
    """How SQL names a table of gold.

    Raises:
        click.UsageError: The dialect reads no paths.
        LakehouseError: There is no such lake, or a table is missing.
    """
    if "." in gold and _SCHEMA.fullmatch(gold) and not Path(gold).is_dir():
        lake = Lake("", gold)
        return lambda table: dialect.name(*str(lake.schema_of(table)).split("."), table.name)
    if not dialect.path:
        raise click.UsageError(f"{gold}: give the CATALOG.SCHEMA in which gold's tables have names")
    from lakehouse.core.delta_rs import locate  # Databricks has no delta-rs

    location = locate(gold, None)
    for table in tables.GOLD if "://" not in gold else ():
        location.open(table)

    def place(table: tables.Table) -> str:
        url = location.url(table)
        return dialect.path.format(dialect.text(url), dialect.name(url))

    return place
