"""``jmxlake register``: bronze under names."""

from __future__ import annotations

import click

from lakehouse.commands.common import LAKE, tell


@click.command(short_help="Give the agents' tables names in a catalog.")
@LAKE
@click.option(
    "--bronze", metavar="CATALOG.SCHEMA", required=True,
    help="Where the names go; the schema must be there.",
)  # fmt: skip
def register(lake: str, bronze: str) -> None:
    """Register the agents' tables of LAKE as external tables of a catalog.

    Names that are there already stay. Nothing is written to LAKE.
    """
    from lakehouse import lake as lakes
    from lakehouse.opened import started

    place = lakes.at(lake)
    for name in lakes.register(started(tell), place.root, bronze):
        click.echo(name)
