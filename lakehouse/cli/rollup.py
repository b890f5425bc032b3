"""``jmxlake rollup``, ``jmxlake verify`` and ``jmxlake register``."""

import datetime as dt
import json
import secrets
import sys
from collections.abc import Iterator
from typing import Final

import click

from lakehouse.cli import options
from lakehouse.cli.options import LAKE, LakeOptions, log
from lakehouse.cli.phases import phase
from lakehouse.core.display import plural
from lakehouse.core.lake import at
from lakehouse.core.objective import Objective
from lakehouse.core.periods import window_seconds
from lakehouse.engines.choice import start_spark
from lakehouse.engines.engine import Engine
from lakehouse.rollup.run import Outcome, Wanted, rollup as run_rollup
from lakehouse.rollup.verify import verify as compare

WINDOW: Final = click.option(
    "--window", type=window_seconds, metavar="LENGTH",
    help="Window of the agents, such as 5m or 30s.",
)  # fmt: skip
TIDY: Final = click.option(
    "--tidy", type=click.Choice(["daily", "now", "never"]), default="daily", show_default=True,
    help="Compact gold and delete its old files after the rollup.",
)  # fmt: skip


@click.command
@options.lake_options()
@WINDOW
@click.option(
    "--since", type=options.date, metavar="DATE",
    help="Recompute all hours from DATE (UTC) on that bronze holds completely.",
)  # fmt: skip
@TIDY
@click.option(
    "--rows", type=click.IntRange(1), metavar="NUMBER",
    help="Rows of bronze/runs to compute at once; by default what fits the engine's memory.",
)  # fmt: skip
@click.option(
    "--take-over", is_flag=True,
    help="Take the lease even if another rollup holds it (only if that process is dead).",
)  # fmt: skip
@click.option(
    "--accept-lost", is_flag=True,
    help="Go on without data files of bronze that are gone; their hours stay unknown.",
)  # fmt: skip
@options.ENGINE
@options.AS_JSON
def rollup(  # noqa: PLR0913 - a click command
    lake: LakeOptions, window: int | None, since: dt.date | None, tidy: str, rows: int | None, *,
    take_over: bool, accept_lost: bool, engine: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Bring gold up to date with what the agents have delivered to LAKE.

    It can be killed at any instant, and the next rollup continues. Exits with 1 if it failed, with
    3 if another rollup of this lake is running.
    """
    objectives, wanted = (
        lake.objectives(),
        Wanted(since, tidy, take_over, rows, accept_lost=accept_lost),
    )
    outcome = roll_up(lake.rollup_engine(engine), objectives, wanted, window)
    if as_json:
        fields = outcome._asdict()
        versions = fields.pop("versions")
        click.echo(json.dumps({**fields, **versions._asdict()}))
    else:
        click.echo("\n".join(outcome_lines(outcome)))


def roll_up(
    engine: Engine, objectives: tuple[Objective, ...], wanted: Wanted, window: int | None
) -> Outcome:
    """Roll up and show the progress."""
    with phase("rollup") as shown:
        outcome = run_rollup(
            engine, objectives, wanted, window_seconds=window, progress=shown.step,
            watch=shown.watch,
        )  # fmt: skip
        shown.result = next(outcome_lines(outcome))
    return outcome


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """Outcome of a rollup, in lines."""
    hours = plural(outcome.hours, "hour").replace("\u00a0", " ")
    yield f"{hours} rolled up" if outcome.hours else "nothing new"
    if outcome.late_rows:
        yield f"{outcome.late_rows} rows came too late and are in gold/rejected"
    if outcome.left:
        yield (
            f"{outcome.left} hours were not recomputed: bronze does not hold them completely, or "
            "gold lacks their finest rows"
        )


@click.command
@options.lake_options()
@click.option(
    "--windows", type=click.IntRange(1), default=24, show_default=True,
    help="Number of hours of clusters to recompute.",
)  # fmt: skip
@click.option("--seed", type=int, help="Choose the same hours again; by default others each time.")
@options.ENGINE
@options.AS_JSON
def verify(
    lake: LakeOptions, windows: int, seed: int | None, *, engine: str | None, as_json: bool
) -> None:
    """Recompute some hours from bronze and compare every row of gold, to the bit.

    Exits with 0 if all rows are equal, with 1 if some differ or it failed, with 3 if a rollup is
    running or was interrupted.
    """
    objectives = lake.objectives()
    chosen = secrets.randbelow(10**9) if seed is None else seed
    result = compare(lake.rollup_engine(engine), objectives, windows, chosen, log)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=1, default=str))
    else:
        for difference in result.differences:
            click.echo(f"{difference.table} {difference.kind}: {difference.row}")
        click.echo(
            f"{result.rows} rows of {result.hours} hours compared, {len(result.differences)} "
            f"differ (seed {chosen})"
        )
    if result.differences:
        sys.exit(1)


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
