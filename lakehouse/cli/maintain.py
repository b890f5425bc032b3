"""``jmxlake maintain`` and ``jmxlake forget``: rewriting of tables without Spark."""

import datetime as dt
import json
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from lakehouse import tables
from lakehouse.cli import options
from lakehouse.core import display
from lakehouse.core.delta_rs import locate
from lakehouse.errors import LakehouseError
from lakehouse.ops.maintain.actions import Executor
from lakehouse.ops.maintain.service import REFUSED, Maintenance, PlannedTable
from lakehouse.ops.maintain.table_state import ReadPositions, by_date, by_progress

_REFUSED: Final = 3
_DAY: Final = 86_400


def _until(text: str) -> Callable[[], dt.date | None]:
    """Return a function that returns a fixed date or a date some time ago; None: never."""
    ago, fixed = None, None
    if re.fullmatch(r"\d+[smhd]", text):
        ago = dt.timedelta(seconds=options.length(text))
    elif text != "never":
        fixed = options.date(text)
    return lambda: fixed if ago is None else (dt.datetime.now(dt.UTC) - ago).date()


def _version(text: str) -> tuple[str, int]:
    """Return the name and a version of a table."""
    name, _, version = text.partition("@")
    is_bronze = name in {table.name for table in tables.BRONZE}
    if not is_bronze or not re.fullmatch(r"[0-9]{1,18}", version):
        raise click.BadParameter(f"{text!r}: use TABLE@VERSION, such as runs@1234")
    return name, int(version)


@click.command
@options.LAKE
@click.option("--once", is_flag=True, help="Run one round and exit (default).")
@click.option("--every", type=options.length, metavar="LENGTH", help="Run a round every LENGTH.")
@click.option("--dry-run", is_flag=True, help="Print planned actions without changing anything.")
@options.AS_JSON
@options.OPTIONS_FILE
@click.option(
    "--keep", type=options.length, metavar="LENGTH", default="400d", show_default=True,
    help="Delete bronze partitions older than LENGTH after they are rolled up.",
)  # fmt: skip
@options.GOLD_OR_NONE
@click.option(
    "--read-until", type=_until, default="never", metavar="DATE|LENGTH|never", show_default=True,
    help="With --gold none: treat commits before DATE (UTC) or LENGTH ago as rolled up.",
)  # fmt: skip
@click.option(
    "--accept", type=_version, multiple=True, metavar="TABLE@VERSION",
    help="Accept commits by another engine to TABLE up to VERSION, after inspection.",
)  # fmt: skip
def maintain(  # noqa: PLR0913 - a click command
    lake: str, every: int | None, options_file: Path | None, keep: int, gold: str | None,
    read_until: Callable[[], dt.date | None], accept: Sequence[tuple[str, int]],
    *, once: bool, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Compact, checkpoint and clean up bronze tables.

    It is safe while agents write. It exits with 1 if it failed, and with 3 if it refuses a table:
    another engine wrote to it, or it is not a table of this version.
    """
    if every is not None and (once or dry_run):
        raise click.UsageError("--every cannot be combined with --once or --dry-run")
    if read_until() is not None and gold != "none":
        raise click.UsageError("--read-until requires --gold none")
    if keep < _DAY:
        raise click.UsageError("--keep must be at least 1d")
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
            options.log(str(error))
            sys.exit(_REFUSED)
        return
    stop = options.stop_signals()
    if every is not None:
        for _ in options.turns(every, stop):
            maintenance.round(stop)
    elif errors := maintenance.round(stop):
        sys.exit(_REFUSED if any(isinstance(error, REFUSED) for error in errors) else 1)


def _log_event(event: str, fields: dict[str, Any], *, as_json: bool) -> None:
    """Print an event as one line on standard error."""
    if not as_json:
        options.log(f"{event} {_text(fields)}")
        return
    at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
    level = "error" if event == "failed" else "info"
    click.echo(json.dumps({"time": at, "level": level, "event": event, **fields}), err=True)


def _print_plans(planned: Sequence[PlannedTable], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"tables": [table._asdict() for table in planned]}, indent=1))
        return
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    for column in ("Table", "Version", "Uncheckpointed", "Live files", "Planned actions"):
        shown.add_column(column, overflow="fold")
    for table in planned:
        lines = [_text(action).removeprefix("action=") for action in table.actions]
        lines += [f"skipped: {reason}" for reason in table.left]
        figures = (table.version, table.uncheckpointed, table.live_files)
        actions = "\n".join(lines or ["none"])
        shown.add_row(table.table, *(f"{figure:,}" for figure in figures), actions)
    # A pipe has no width, and a program that reads it needs whole lines.
    Console(width=None if sys.stdout.isatty() else 400, markup=False).print(shown)


def _text(fields: dict[str, Any]) -> str:
    return display.untied(
        " ".join(
            f"{name}={display.size(value) if name in {'size', 'target_size'} else value}"
            for name, value in fields.items()
        )
    )


@click.command
@options.LAKE
@click.argument("name")
@click.option("--as", "other", metavar="NAME", help="Replacement name. Default: random.")
@click.option("--dry-run", is_flag=True, help="Count affected rows without changing them.")
@options.OPTIONS_FILE
@options.AS_JSON
def forget(
    lake: str, name: str, other: str | None, options_file: Path | None,
    *, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Replace a user name or client ID in every table.

    All figures stay the same. First configure the agents to hide or exclude NAME (section names of
    their configuration); otherwise they add it again. Old files keep the name: in gold until
    rollups of the next days remove them (gold/sla: after 30 days), in bronze until jmxlake maintain
    removes them after 30 days.

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
        options.log(f"replaced by {chosen}")
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
