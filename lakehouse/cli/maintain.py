"""``jmxlake maintain``, and the systemd unit that runs it (``jmxlake unit``)."""

import datetime as dt
import json
import re
import sys
import sysconfig
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from lakehouse import tables
from lakehouse.cli.options import (
    AS_JSON,
    GOLD_OR_NONE,
    LAKE,
    OPTIONS_FILE,
    date,
    length,
    log,
    stop_signals,
    turns,
)
from lakehouse.core import display
from lakehouse.core.delta_rs import locate
from lakehouse.ops.maintain.actions import Executor
from lakehouse.ops.maintain.rollup_position import ReadPositions, by_date, by_progress
from lakehouse.ops.maintain.service import REFUSED, Maintenance, PlannedTable

_REFUSED: Final = 3
_DAY: Final = 86_400


def _until(text: str) -> Callable[[], dt.date | None]:
    """Gives a date, for a length of time the one so long ago; None: never."""
    ago, fixed = None, None
    if re.fullmatch(r"\d+[smhd]", text):
        ago = dt.timedelta(seconds=length(text))
    elif text != "never":
        fixed = date(text)
    return lambda: fixed if ago is None else (dt.datetime.now(dt.UTC) - ago).date()


def _version(text: str) -> tuple[str, int]:
    """A table's name and a version of it."""
    name, _, version = text.partition("@")
    is_bronze = name in {table.name for table in tables.BRONZE}
    if not is_bronze or not re.fullmatch(r"[0-9]{1,18}", version):
        raise click.BadParameter(f"{text!r}: write a table of bronze and a version, as runs@1234")
    return name, int(version)


_UNITS: Final = {
    "maintain": "jmxlake-maintain.service",
    "rollup": "jmxlake-rollup.service",
    "weekly": "jmxlake-weekly.service",
    "weekly-timer": "jmxlake-weekly.timer",
}


@click.command
@LAKE
@click.option("--once", is_flag=True, help="Run one round, then exit (the default).")
@click.option("--every", type=length, metavar="LENGTH", help="Run a round every LENGTH.")
@click.option("--dry-run", is_flag=True, help="Print what a round would do; change nothing.")
@AS_JSON
@OPTIONS_FILE
@click.option(
    "--keep", type=length, metavar="LENGTH", default="400d", show_default=True,
    help="Remove older dates of bronze, once they are rolled up.",
)  # fmt: skip
@GOLD_OR_NONE
@click.option(
    "--read-until", type=_until, default="never", metavar="DATE|LENGTH|never", show_default=True,
    help="With --gold none: all commits before DATE (UTC), or longer ago than LENGTH, are rolled "
    "up.",
)  # fmt: skip
@click.option(
    "--accept", type=_version, multiple=True, metavar="TABLE@VERSION",
    help="Accept commits of another engine to TABLE up to VERSION (after inspecting them).",
)  # fmt: skip
def maintain(  # noqa: PLR0913 - a click command
    lake: str, every: int | None, options_file: Path | None, keep: int, gold: str | None,
    read_until: Callable[[], dt.date | None], accept: Sequence[tuple[str, int]],
    *, once: bool, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Keep the bronze tables of LAKE small: compact, checkpoint, clean up.

    Safe while agents write. Exits with 1 if something failed, and with 3 if a table is refused:
    another engine wrote to it, or it is not a table of this version.
    """
    if every is not None and (once or dry_run):
        raise click.UsageError("--every does not end: give it without --once and --dry-run")
    if read_until() is not None and gold != "none":
        raise click.UsageError("--read-until goes with --gold none")
    if keep < _DAY:
        raise click.UsageError("--keep: write at least 1d")
    location = locate(lake, options_file, None if gold == "none" else gold)
    positions: Callable[[], ReadPositions] = partial(by_progress, location)
    if gold == "none":
        positions = lambda: by_date(location, read_until())  # noqa: E731
    maintenance = Maintenance(
        location, Executor(location, uuid.uuid4().hex), positions, keep // _DAY, dict(accept),
        lambda: dt.datetime.now(dt.UTC), partial(_log_event, as_json=as_json),
    )  # fmt: skip
    if dry_run:
        try:
            _print_plans(maintenance.plans(), as_json=as_json)
        except REFUSED as error:
            log(str(error))
            sys.exit(_REFUSED)
        return
    stop = stop_signals()
    if every is not None:
        for _ in turns(every, stop):
            maintenance.round(stop)
    elif errors := maintenance.round(stop):
        sys.exit(_REFUSED if any(isinstance(error, REFUSED) for error in errors) else 1)


@click.command
@click.argument("name", type=click.Choice(list(_UNITS)), default="maintain", metavar="[NAME]")
def unit(name: str) -> None:
    """Print a systemd unit: maintain (default), rollup, weekly, or weekly-timer for weekly."""
    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    folder = checkout if checkout.is_dir() else installed
    click.echo((folder / "systemd" / _UNITS[name]).read_text("utf-8"), nl=False)


def _log_event(event: str, fields: dict[str, Any], *, as_json: bool) -> None:
    """Write an event as one line to standard error."""
    if not as_json:
        log(f"{event} {_text(fields)}")
        return
    at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
    level = "error" if event == "failed" else "info"
    click.echo(json.dumps({"time": at, "level": level, "event": event, **fields}), err=True)


def _print_plans(planned: Sequence[PlannedTable], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"tables": [one._asdict() for one in planned]}, indent=1))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    for column in ("Table", "Version", "Uncheckpointed", "Live files", "Due"):
        table.add_column(column, overflow="fold")
    for one in planned:
        lines = [_text(action).removeprefix("action=") for action in one.actions]
        lines += [f"not done: {reason}" for reason in one.left]
        figures = (one.version, one.uncheckpointed, one.live_files)
        due = "\n".join(lines or ["nothing"])
        table.add_row(one.table, *(f"{figure:,}" for figure in figures), due)
    # A pipe has no width: a program that reads it needs whole lines.
    Console(width=None if sys.stdout.isatty() else 400, markup=False).print(table)


def _text(fields: dict[str, Any]) -> str:
    return display.untied(
        " ".join(
            f"{name}={display.size(value) if name in {'size', 'target_size'} else value}"
            for name, value in fields.items()
        )
    )
