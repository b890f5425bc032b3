"""``jmxlake forget``: another name takes the place of a user's or client id's."""

import json
import uuid
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import click

from lakehouse.cli.options import AS_JSON, LAKE, OPTIONS_FILE, log
from lakehouse.core.delta_rs import locate
from lakehouse.errors import LakehouseError


@click.command
@LAKE
@click.argument("name")
@click.option(
    "--as", "other", metavar="NAME", help="What takes its place; by default a random name."
)
@click.option("--dry-run", is_flag=True, help="Count the rows; change nothing.")
@OPTIONS_FILE
@AS_JSON
def forget(
    lake: str, name: str, other: str | None, options_file: Path | None,
    *, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Let LAKE forget NAME, a user or client id: another name takes its place in every table.

    All figures stay. First have the agents hide or leave out the name (section names of their
    configuration), or they bring it again. Files from before are removed by clean-up: those of
    gold by the next days' rollups, but for those of gold/sla, and those of bronze (by jmxlake
    maintain) after 30 days.

    Exits with 1 if no table has it, and if it failed: then run it again with the same --as.
    """
    # Help needs neither DuckDB nor pyarrow.
    from lakehouse.core import lake as lakes
    from lakehouse.engines.local_engine import LocalEngine
    from lakehouse.ops import pseudonymize as names
    from lakehouse.rollup.lease import USUAL, hold

    location = locate(lake, options_file)
    chosen = other or f"forgotten-{uuid.uuid4().hex[:12]}"
    if chosen == name:
        raise click.UsageError("--as: that is the name itself")
    engine = LocalEngine(lakes.at(lake), location.options)
    if dry_run:
        found = names.find(location, name)
    else:
        log(f"in its place stands {chosen}")
        found = names.forget(location, name, chosen, partial(hold, engine, USUAL))
    _print_found(found, None if dry_run else chosen, as_json=as_json)


def _print_found(found: Iterable[tuple[str, int]], other: str | None, *, as_json: bool) -> None:
    rows = {}
    for table, count in found:
        rows[table] = count
        if count and not as_json:
            click.echo(f"{table}: {count:,} rows")
    if as_json:
        click.echo(json.dumps({"as": other, "rows": rows}))
    if not any(rows.values()):
        raise LakehouseError("no table has that name")
