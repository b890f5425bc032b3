"""``jmxlake schema``: JSON Schemas of the YAML files that commands of jmxlake read."""

from collections.abc import Callable, Mapping
from typing import Final

import click

from lakehouse.cli.reports.weekly import file_type
from lakehouse.report.owners import OwnersFile
from lakehouse.report.send.delivery import Settings
from lakehouse.slo import calendar_schema
from lakehouse.slo.openslo import json_schema as openslo_schema
from lakehouse.tables import json_schema
from lakehouse.tables.json_schema import Schema

_Parts = tuple[Schema, Mapping[str, Schema]]

_FILES: Final[Mapping[str, tuple[str, Callable[[], _Parts]]]] = {
    "objectives": ("Objectives of jmxlake (OpenSLO v1)", openslo_schema.file),
    "weekly": ("Options of jmxlake weekly", lambda: json_schema.of_type(file_type())),
    "owners": ("Owners of topics, clients and groups", lambda: json_schema.of_type(OwnersFile)),
    "maintenance": ("Planned maintenance", lambda: (calendar_schema.maintenance(), {})),
    "corrections": ("Corrections of SLO results", lambda: (calendar_schema.corrections(), {})),
    "send": ("Settings of jmxlake send", lambda: json_schema.of_type(Settings)),
}
"""Title and schema of each file."""
NAMES: Final = tuple(_FILES)


def schema_of(name: str) -> Schema:
    """Return the schema of a file, by its name in ``NAMES``."""
    title, parts = _FILES[name]
    return json_schema.document(name, title, *parts())


@click.command
@click.argument("name", type=click.Choice(NAMES), metavar="NAME")
def schema(name: str) -> None:
    """Print the JSON Schema of a YAML file.

    NAME is objectives, weekly, owners, maintenance, corrections, or send. Editors use the schema
    for completion and checks. The files that jmxlake writes name it in their first line. For
    agent.yaml use jmxlake-agent schema.
    """
    click.echo(json_schema.text(schema_of(name)), nl=False)
