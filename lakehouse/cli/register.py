"""``jmxlake register``: names for the agents' tables in a catalog."""

import click

from lakehouse.cli.options import LAKE, log
from lakehouse.core.lake import at
from lakehouse.engines.choice import start_spark


@click.command
@LAKE
@click.option(
    "--bronze", metavar="CATALOG.SCHEMA", required=True,
    help="Schema of the tables' names; it must exist.",
)  # fmt: skip
def register(lake: str, bronze: str) -> None:
    """Register the agents' tables of LAKE as external tables of a catalog.

    Existing names stay. Nothing is written to LAKE.
    """
    location, spark = at(lake), start_spark(log)
    from lakehouse.ops.register import register as register_tables  # it imports Spark

    for name in register_tables(spark, location.root, bronze):
        click.echo(name)
