"""``jmxlake watched-groups``."""

import datetime as dt
import json
from pathlib import Path

import click

from lakehouse.cli.options import AS_JSON, LAKE, OPTIONS_FILE
from lakehouse.tables.error_text import printable


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

    Creates the table control/watched_groups if it does not exist, adds a row for --topic, and
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
