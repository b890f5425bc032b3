"""``jmxlake forget``: a replacement for the name of a user or client ID."""

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
@click.option("--as", "other", metavar="NAME", help="Replacement name. Default: random.")
@click.option("--dry-run", is_flag=True, help="Count affected rows without changing them.")
@OPTIONS_FILE
@AS_JSON
def forget(
    lake: str, name: str, other: str | None, options_file: Path | None,
    *, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Replace a user name or client ID in every table.

    All figures stay the same. First configure the agents to hide or exclude NAME (section names of
    their configuration); otherwise they add it again. Clean-up removes the old files: the rollups
    of the next days clean up gold, except gold/sla, and jmxlake maintain cleans up bronze after 30
    days.

    It exits with 1 if no table contains NAME or if it failed. In the second case, run it again with
    the same --as.
    """
    # Help must work without DuckDB and pyarrow.
    from lakehouse.core import lake as lakes
    from lakehouse.engines.local_engine import LocalEngine
    from lakehouse.ops import pseudonymize as names
    from lakehouse.rollup.lease import USUAL, hold

    location = locate(lake, options_file)
    chosen = other or f"forgotten-{uuid.uuid4().hex[:12]}"
    if chosen == name:
        raise click.UsageError("--as must differ from NAME")
    engine = LocalEngine(lakes.at(lake), location.options)
    if dry_run:
        found = names.find(location, name)
    else:
        log(f"replaced by {chosen}")
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
        raise LakehouseError("no table contains that name")
