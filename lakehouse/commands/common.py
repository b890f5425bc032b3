"""What several commands of ``jmxlake`` have in common: their options, and opening a lake."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lakehouse.quiet import quiet_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake

LAKE: Final = click.argument("lake", metavar="LAKE")
GOLD: Final = click.option(
    "--gold", metavar="CATALOG.SCHEMA", help="Where gold is, if not below LAKE."
)
OBJECTIVES: Final = click.option(
    "--objectives",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of OpenSLO files; by default those that jmxlake ships.",
)
AS_JSON: Final = click.option("--json", "as_json", is_flag=True, help="Tell the outcome as JSON.")


def opened(lake: str, gold: str | None) -> tuple[SparkSession, Lake]:
    """Spark, and the lake."""
    from lakehouse import lake as lakes
    from lakehouse.session import session

    place = lakes.at(lake, gold)
    tell("starting Spark")
    with quiet_jvm():
        return session(), place


def tell(what: str) -> None:
    """A line of progress, on standard error."""
    click.echo(f"jmxlake: {what}", err=True)
