"""``jmxlake rollup``, ``jmxlake verify`` and ``jmxlake upgrade``."""

import datetime as dt
import json
import secrets
import sys
import threading
from functools import partial
from typing import Final

import click

from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions, log, stop_signals
from lakehouse.cli.phases import phase
from lakehouse.cli.rollup_service import (
    RollupService,
    outcome_json,
    outcome_lines,
    stop_retries_after,
)
from lakehouse.core.display import plural
from lakehouse.core.objective import Objective
from lakehouse.core.periods import window_seconds
from lakehouse.engines.engine import Engine
from lakehouse.rollup.plan import Wanted
from lakehouse.rollup.run import Outcome, rollup as run_rollup
from lakehouse.rollup.upgrade import upgrade as convert
from lakehouse.rollup.verify import verify as compare

WINDOW: Final = click.option(
    "--window", type=window_seconds, metavar="LENGTH",
    help="Window length of the agents, such as 5m or 30s.",
)  # fmt: skip
TIDY: Final = click.option(
    "--tidy", type=click.Choice(["daily", "now", "never"]), default="daily", show_default=True,
    help="Compaction of gold after the rollup, including deletion of obsolete files.",
)  # fmt: skip
_TAKE_OVER: Final = "Take over the lease of another rollup. Use only if that process is dead."


@click.command
@options.lake_options()
@WINDOW
@click.option(
    "--since", type=options.date, metavar="DATE",
    help="Recompute every hour from DATE (UTC) for which bronze is complete.",
)  # fmt: skip
@TIDY
@click.option(
    "--rows", type=click.IntRange(1), metavar="NUMBER",
    help="Maximum bronze rows per batch. Default: based on available memory.",
)  # fmt: skip
@click.option("--take-over", is_flag=True, help=_TAKE_OVER)
@click.option(
    "--accept-lost", is_flag=True,
    help="Continue without deleted data files of bronze. Their hours remain unknown.",
)  # fmt: skip
@click.option(
    "--every", type=options.length, metavar="LENGTH",
    help="Roll up every LENGTH in one process until SIGTERM. The running batch completes first.",
)  # fmt: skip
@options.ENGINE
@options.AS_JSON
def rollup(  # noqa: PLR0913 - a click command
    lake: LakeOptions, window: int | None, since: dt.date | None, tidy: str, rows: int | None,
    every: int | None, *, take_over: bool, accept_lost: bool, engine: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Update gold tables from bronze.

    You can interrupt it at any time; the next rollup continues. It exits with 1 if it failed, and
    with 3 if another rollup of LAKE is running. With --every it logs failures and tries again.
    """
    objectives, wanted = (
        lake.objectives(),
        Wanted(since, tidy, take_over, rows, accept_lost=accept_lost),
    )
    if every is not None:
        if since or take_over or accept_lost or tidy == "now":
            single = "--since, --take-over, --accept-lost or --tidy now"
            raise click.UsageError(f"--every cannot be combined with {single}")
        service = RollupService(partial(lake.rollup_engine, engine), objectives, wanted, window)
        stop = stop_signals()
        threading.Thread(target=stop_retries_after, args=(stop,), daemon=True).start()
        service.serve(every, stop, as_json=as_json)
        return
    outcome = roll_up(lake.rollup_engine(engine), objectives, wanted, window)
    if as_json:
        click.echo(json.dumps(outcome_json(outcome)))
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


@click.command
@options.lake_options()
@click.option(
    "--windows", type=click.IntRange(1), default=24, show_default=True,
    help="Number of cluster-hours to recompute.",
)  # fmt: skip
@click.option("--seed", type=int, help="Random seed for the choice of hours. Default: random.")
@options.ENGINE
@options.AS_JSON
def verify(
    lake: LakeOptions, windows: int, seed: int | None, *, engine: str | None, as_json: bool
) -> None:
    """Recompute some hours and compare them with gold.

    It recomputes every row of these hours from bronze and expects byte-identical rows. It exits
    with 0 if all rows are equal, with 1 if some differ or it failed, and with 3 if a rollup is
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
@options.lake_options()
@click.option("--take-over", is_flag=True, help=_TAKE_OVER)
@options.ENGINE
@options.AS_JSON
def upgrade(lake: LakeOptions, *, take_over: bool, engine: str | None, as_json: bool) -> None:
    """Convert gold tables that an older version wrote.

    All figures stay the same, including published SLO results and hours that bronze no longer has.
    Stop rollups of the older version first. You can interrupt the command and run it again. It does
    not change gold of this version.
    """
    number = convert(lake.rollup_engine(engine), log, take_over=take_over)
    if as_json:
        click.echo(json.dumps({"tables": number}))
    else:
        click.echo(f"{plural(number, 'gold table')} converted")
