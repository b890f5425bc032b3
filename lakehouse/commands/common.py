"""What several commands of ``jmxlake`` have in common: their options, and opening a lake."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lakehouse.errors import LakehouseError
from lakehouse.quiet import quiet_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake

LAKE: Final = click.argument("lake", metavar="LAKE")
GOLD: Final = click.option(
    "--gold", metavar="CATALOG.SCHEMA", help="Where gold is, if not below LAKE."
)
GOLD_OR_NONE: Final = click.option(
    "--gold", metavar="PATH",
    help="Folder or URL of gold, if not LAKE/gold; 'none' where it cannot be read from here.",
)  # fmt: skip
OPTIONS_FILE: Final = click.option(
    "--options-file", type=click.Path(dir_okay=False, path_type=Path),
    help="YAML with storage options of delta-rs, the same as the agents'.",
)  # fmt: skip
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


def written(path: Path, content: bytes) -> None:
    """Write a file, its folders too; ``-`` is standard output.

    Raises:
        LakehouseError: It cannot be written.
    """
    if str(path) == "-":
        click.echo(content, nl=False)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise LakehouseError(
            f"{path}: {error.strerror}; choose a file that can be written"
        ) from error


def file_stem(cluster: str) -> str:
    """A file's name that no cluster can choose to lead elsewhere, and no two share."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", cluster).strip("-")[:40]
    digest = hashlib.sha256(cluster.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest
