"""``jmxlake rollup`` and ``jmxlake verify``."""

from __future__ import annotations

import datetime as dt
import json
import sys
from contextlib import contextmanager
from importlib import util
from typing import TYPE_CHECKING, Any, Final

import click

from lakehouse.commands.common import AS_JSON, GOLD, LAKE, OBJECTIVES, opened, tell
from lakehouse.errors import LeaseHeldError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from lakehouse.rollup import Done
    from lakehouse.rollup.engine import Engine

_HELD: Final = 3
_ENGINE: Final = click.option(
    "--engine", type=click.Choice(["spark", "local"]),
    help="By what: Spark, or delta-rs and DuckDB in this process, for a LAKE that is a path. By "
    "default Spark, if it is installed.",
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
@click.option("--window", metavar="LENGTH", help="Window of the agents, such as 5m or 30s.")
@click.option(
    "--since", type=_date, metavar="DATE",
    help="Recompute all hours from DATE (UTC) on that bronze still holds wholly.",
)  # fmt: skip
@click.option(
    "--tidy", type=click.Choice(["daily", "now", "never"]), default="daily", show_default=True,
    help="Put gold's small files together and delete old ones, after the rollup.",
)  # fmt: skip
@click.option(
    "--rows", type=click.IntRange(1), metavar="NUMBER",
    help="Rows of bronze/runs to recompute at once; by default what the engine has memory for.",
)  # fmt: skip
@click.option(
    "--take-over", is_flag=True, help="You know that the rollup that holds the lease is dead."
)
@_ENGINE
@AS_JSON
def rollup(  # noqa: PLR0913 - a click command
    lake: str, gold: str | None, objectives: Path | None, window: str | None,
    since: dt.date | None, tidy: str, rows: int | None, *, engine: str | None,
    take_over: bool, as_json: bool,
) -> None:  # fmt: skip
    """Bring gold up to date with what the agents have delivered to LAKE.

    It can be ended at any instant and goes on where it was. Ends with 1 where it failed, with 3
    where another rollup of this lake is at work.
    """
    from lakehouse import grains, slo
    from lakehouse.rollup import Wanted
    from lakehouse.rollup import rollup as roll_up

    seconds = None if window is None else grains.parse_window(window)
    wanted = slo.load(objectives or slo.SHIPPED)
    asked = Wanted(since, tidy, take_over, rows)
    used = _engine(lake, gold, engine)
    try:
        with shown() as (step, watch):
            outcome = roll_up(
                used, wanted, asked, window_seconds=seconds, progress=step, watch=watch
            )
    except LeaseHeldError as error:
        click.echo(f"jmxlake: {error}", err=True)
        sys.exit(_HELD)
    if as_json:
        told = outcome._asdict()
        told.pop("versions")
        click.echo(json.dumps({**told, **outcome.versions._asdict()}))
        return
    click.echo(f"{outcome.hours} hours rolled up" if outcome.hours else "nothing new")
    if outcome.late_rows:
        click.echo(f"{outcome.late_rows} rows came too late and are in gold/rejected")
    if outcome.left:
        click.echo(
            f"{outcome.left} hours stay as they are: bronze does not hold them wholly, or gold "
            "not their finest rows"
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
@_ENGINE
@AS_JSON
def verify(
    lake: str, gold: str | None, objectives: Path | None, windows: int, seed: int | None, *,
    engine: str | None, as_json: bool,
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
    used = _engine(lake, gold, engine)
    try:
        found = compare(used, wanted, windows, chosen, tell)
    except LeaseHeldError as error:
        click.echo(f"jmxlake: {error}", err=True)
        sys.exit(_HELD)
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


def _engine(lake: str, gold: str | None, wished: str | None) -> Engine:
    """The engine of a lake, said in one line."""
    if (wished or ("spark" if util.find_spec("pyspark") else "local")) == "spark":
        spark, place = opened(lake, gold)
        from lakehouse.rollup.spark_engine import SparkEngine

        return SparkEngine(spark, place)
    from lakehouse import lake as lakes
    from lakehouse.rollup.local_engine import LocalEngine

    place = lakes.at(lake, gold)
    tell("without Spark" + ", which is not installed" * (wished is None))
    return LocalEngine(place)


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
