"""``jmxlake upgrade``: gold of an older version becomes gold of this one."""

import json

import click

from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions, log
from lakehouse.core.display import plural
from lakehouse.rollup.upgrade import upgrade as convert


@click.command
@options.lake_options()
@click.option(
    "--take-over", is_flag=True,
    help="Take the lease even if a rollup holds it (only if that process is dead).",
)  # fmt: skip
@options.ENGINE
@options.AS_JSON
def upgrade(lake: LakeOptions, *, take_over: bool, engine: str | None, as_json: bool) -> None:
    """Convert LAKE's gold, which an older version wrote, to the tables of this version.

    Every row keeps its figures, also hours that bronze no longer has and published statements. Stop
    rollups of the older version first. The command can be killed at any instant and run again; gold
    of this version stays as it is.
    """
    number = convert(lake.rollup_engine(engine), log, take_over=take_over)
    if as_json:
        click.echo(json.dumps({"tables": number}))
    else:
        click.echo(f"{plural(number, 'table')} of gold converted")
