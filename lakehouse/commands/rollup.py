"""``jmxlake rollup`` and ``jmxlake verify``."""

from __future__ import annotations

import datetime as dt
import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from lakehouse.commands.common import (
    AS_JSON,
    ENGINE,
    GOLD,
    LAKE,
    OBJECTIVES,
    OPTIONS_FILE,
    rolling,
    tell,
    unless_held,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse.rollup import Done, Outcome, Wanted
    from lakehouse.rollup.engine import Engine
    from lakehouse.slo import Objective

WINDOW: Final = click.option(
    "--window", metavar="LENGTH", help="Window of the agents, such as 5m or 30s."
)
TIDY: Final = click.option(
    "--tidy", type=click.Choice(["daily", "now", "never"]), default="daily", show_default=True,
    help="Put gold's small files together and delete old ones, after the rollup.",
)  # fmt: skip


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no date such as 2026-11-16") from error


@click.command(short_help="Bring gold up to date with what agents delivered.")
@LAKE
@GOLD
@OBJECTIVES
@WINDOW
@click.option(
    "--since", type=_date, metavar="DATE",
    help="Recompute all hours from DATE (UTC) on that bronze still holds wholly.",
)  # fmt: skip
@TIDY
@click.option(
    "--rows", type=click.IntRange(1), metavar="NUMBER",
    help="Rows of bronze/runs to recompute at once; by default what the engine has memory for.",
)  # fmt: skip
@click.option(
    "--take-over", is_flag=True, help="You know that the rollup that holds the lease is dead."
)
@ENGINE
@OPTIONS_FILE
@AS_JSON
def rollup(  # noqa: PLR0913 - a click command
    lake: str, gold: str | None, objectives: Path | None, window: str | None,
    since: dt.date | None, tidy: str, rows: int | None, *, engine: str | None,
    take_over: bool, options_file: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Bring gold up to date with what the agents have delivered to LAKE.

    It can be ended at any instant and goes on where it was. Ends with 1 where it failed, with 3
    where another rollup of this lake is at work.
    """
    from lakehouse import slo
    from lakehouse.rollup import Wanted

    seconds = window_seconds(window)
    wanted = slo.load(objectives or slo.SHIPPED)
    asked = Wanted(since, tidy, take_over, rows)
    outcome = rolled_up(rolling(lake, gold, options_file, engine), wanted, asked, seconds)
    if as_json:
        told = outcome._asdict()
        told.pop("versions")
        click.echo(json.dumps({**told, **outcome.versions._asdict()}))
        return
    for line in done(outcome):
        click.echo(line)


def window_seconds(window: str | None) -> int | None:
    """Length of the agents' windows, as a person writes it."""
    from lakehouse import periods

    return None if window is None else periods.window_seconds(window)


def rolled_up(
    engine: Engine, objectives: tuple[Objective, ...], wanted: Wanted, seconds: int | None
) -> Outcome:
    """Roll up, and show how far it is; ends with 3 where another rollup is at work."""
    from lakehouse.rollup import rollup as roll_up

    with unless_held(), shown() as (step, watch):
        return roll_up(
            engine, objectives, wanted, window_seconds=seconds, progress=step, watch=watch
        )


def done(outcome: Outcome) -> Iterator[str]:
    """What a rollup did, in lines."""
    yield f"{outcome.hours} hours rolled up" if outcome.hours else "nothing new"
    if outcome.late_rows:
        yield f"{outcome.late_rows} rows came too late and are in gold/rejected"
    if outcome.left:
        yield (
            f"{outcome.left} hours stay as they are: bronze does not hold them wholly, or gold not "
            "their finest rows"
        )


@click.command(short_help="Recompute some hours and compare gold to the bit.")
@LAKE
@GOLD
@OBJECTIVES
@click.option(
    "--windows", type=click.IntRange(1), default=24, show_default=True,
    help="How many hours of clusters to recompute.",
)  # fmt: skip
@click.option("--seed", type=int, help="Choose the same hours again; by default others each time.")
@ENGINE
@OPTIONS_FILE
@AS_JSON
def verify(  # noqa: PLR0913 - a click command
    lake: str, gold: str | None, objectives: Path | None, windows: int, seed: int | None, *,
    engine: str | None, options_file: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Recompute some hours from bronze and compare every row of gold, to the bit.

    Ends with 0 where all rows are equal, with 1 where some differ or it could not be done, with 3
    where a rollup is at work or was cut short.
    """
    import secrets

    from lakehouse import slo
    from lakehouse.rollup.verify import verify as compare

    wanted = slo.load(objectives or slo.SHIPPED)
    chosen = secrets.randbelow(10**9) if seed is None else seed
    with unless_held():
        used = rolling(lake, gold, options_file, engine)
        found = compare(used, wanted, windows, chosen, tell)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=1, default=str))
    else:
        for one in found.differences:
            click.echo(f"{one.table} {one.kind}: {one.row}")
        click.echo(
            f"{found.rows} rows of {found.hours} hours compared, {len(found.differences)} differ "
            f"(seed {chosen})"
        )
    if found.differences:
        sys.exit(1)


@contextmanager
def shown() -> Iterator[tuple[Callable[[str], None], Callable[[Done], None]]]:
    """How far the rollup is: a bar on a terminal, else lines."""
    if not sys.stderr.isatty():
        yield tell, _tell_done
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("jmxlake: {task.description}"), BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} hours, {task.fields[rows]:,} rows"),
        TimeRemainingColumn(), console=Console(stderr=True), transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task("looking for what is new", total=0, rows=0)

        def watch(done: Done) -> None:
            told: dict[str, Any] = {"rows": done.rows}
            bar.update(task, completed=done.hours, total=done.of_hours, **told)

        yield (lambda what: bar.update(task, description=what)), watch


def _tell_done(done: Done) -> None:
    if done.of_hours:
        tell(f"{done.hours} of {done.of_hours} hours, {done.rows:,} rows")
