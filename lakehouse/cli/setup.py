"""Commands to set up: watched groups, schemas of files, a sample, completion and systemd units."""

import datetime as dt
import json
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import click
from click.shell_completion import shell_complete

from lakehouse.cli.options import AS_JSON, FOLDER, LAKE, OPTIONS_FILE, log
from lakehouse.tables.error_text import printable

_EARLIEST: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_UNITS: Final = {
    "maintain": "jmxlake-maintain.service",
    "rollup": "jmxlake-rollup.service",
    "weekly": "jmxlake-weekly.service",
    "weekly-timer": "jmxlake-weekly.timer",
}
_FILES: Final = {
    "objectives": "Objectives of jmxlake (OpenSLO v1)",
    "weekly": "Options of jmxlake weekly",
    "owners": "Owners of topics, clients and groups",
    "maintenance": "Planned maintenance",
    "corrections": "Corrections of SLO results",
    "send": "Settings of jmxlake send",
}
"""Titles of YAML files with a schema."""
NAMES: Final = tuple(_FILES)


@click.command("watched-groups")
@LAKE
@click.option("--topic", metavar="PATTERN", help="Name or pattern of a topic.")
@click.option(
    "--group", "groups", metavar="PATTERN", multiple=True,
    help="Name or pattern of a group; ! excludes, and '!*' means no groups. Repeatable.",
)  # fmt: skip
@click.option("--set-by", metavar="NAME", help="Person or team that sets the groups.")
@OPTIONS_FILE
@AS_JSON
def watched_groups(
    lake: str, topic: str | None, groups: tuple[str, ...], set_by: str | None,
    options_file: Path | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Choose the groups that agents count, by topic.

    It creates the table control/watched_groups if it does not exist, adds a row for --topic, and
    prints all rows. The newest row of a topic applies. Agents read it every five minutes. Any
    engine that writes Delta can change it, for example with SQL.
    """
    if (topic is None) != (not groups):
        raise click.UsageError("use --topic and --group together")
    from lakehouse.core.delta_rs import locate  # help must work without delta-rs
    from lakehouse.ops import watched_groups as table

    location = locate(lake, options_file)
    table.create(location)
    if topic is not None:
        table.add(location, topic, groups, set_by, dt.datetime.now(dt.UTC))
    for row in table.rows(location):
        at = row["set_at"] and row["set_at"].isoformat(timespec="seconds")
        if as_json:
            click.echo(json.dumps(row | {"set_at": at}))
        else:
            texts = [row["topic"], ",".join(map(str, row["groups"])), row["set_by"], at]
            click.echo(printable("  ".join(text or "-" for text in texts)))


def schema_text(name: str) -> str:
    """Return the JSON Schema of a file, by its name in ``NAMES``."""
    # The other commands must work without these modules.
    from lakehouse.cli.weekly import file_type
    from lakehouse.report.owners import OwnersFile
    from lakehouse.report.send.delivery import Settings
    from lakehouse.slo import json_schema as of_slo
    from lakehouse.tables import typed_settings
    from lakehouse.tables.typed_settings import Schema, type_schema

    schemas: dict[str, Callable[[], tuple[Schema, Mapping[str, Schema]]]] = {
        "objectives": of_slo.objectives,
        "weekly": lambda: type_schema(file_type()),
        "owners": lambda: type_schema(OwnersFile),
        "maintenance": lambda: (of_slo.maintenance(), {}),
        "corrections": lambda: (of_slo.corrections(), {}),
        "send": lambda: type_schema(Settings),
    }
    document = typed_settings.schema_document(name, _FILES[name], *schemas[name]())
    return typed_settings.schema_text(document)


@click.command
@click.argument("name", type=click.Choice(NAMES), metavar="NAME")
def schema(name: str) -> None:
    """Print the JSON Schema of a YAML file.

    NAME is objectives, weekly, owners, maintenance, corrections, or send. Editors use the schema
    for completion and checks. The files that jmxlake writes name it in their first line. For
    agent.yaml use jmxlake-agent schema.
    """
    click.echo(schema_text(name), nl=False)


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell completion script.

    For bash: jmxlake completion bash > /etc/bash_completion.d/jmxlake
    """
    program = context.find_root().command
    shell_complete(program, {}, "jmxlake", "_JMXLAKE_COMPLETE", f"{shell}_source")


@click.command("systemd-unit")
@click.argument("name", type=click.Choice(list(_UNITS)), default="maintain", metavar="[NAME]")
def systemd_unit(name: str) -> None:
    """Print a systemd unit for maintain, rollup or weekly.

    NAME is maintain (default), rollup, weekly, or weekly-timer for the timer of weekly.
    """
    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    folder = checkout if checkout.is_dir() else installed
    click.echo((folder / "systemd" / _UNITS[name]).read_text("utf-8"), nl=False)


@click.command
@click.argument("lake", metavar="LAKE", type=FOLDER)
@click.option(
    "--weeks", type=click.IntRange(1, 12), default=9, show_default=True,
    help="Number of whole ISO weeks. Days of the current week are added.",
)  # fmt: skip
@click.option("--seed", type=int, default=1, show_default=True, help="Random seed.")
@click.option(
    "--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE",
    help="End date (UTC), exclusive, not in the future. Default: now.",
)  # fmt: skip
def sample(lake: Path, weeks: int, seed: int, until: dt.datetime | None) -> None:
    """Write a sample lake of an invented Kafka cluster.

    Brokers fail and restart, clients are throttled, uploads lag, and a group loses records. Agents
    scrape all families in the last three weeks, and before that only the families of the
    objectives. LAKE is a folder without a lake. The command also writes LAKE-owners.yaml and
    LAKE-maintenance.yaml. Continue with jmxlake weekly LAKE, or any other command.
    """
    # The other commands must work without DuckDB and pyarrow.
    from lakehouse.sample import writer
    from lakehouse.sample.values import sampled

    now = dt.datetime.now(dt.UTC)
    end = now if until is None else until.replace(tzinfo=dt.UTC)
    if end > now:
        raise click.UsageError(f"--until {end:%Y-%m-%d} is in the future")
    if end < _EARLIEST:
        raise click.UsageError(f"--until {end:%Y-%m-%d} is before {_EARLIEST:%Y}")
    runs, beside = writer.write(lake, sampled(end, weeks, seed)), writer.beside(lake)
    log(
        f"{lake}: {runs:,} rows. Continue with: jmxlake weekly {lake} --owners {beside.owners} "
        f"--maintenance {beside.maintenance} --html report.html"
    )
