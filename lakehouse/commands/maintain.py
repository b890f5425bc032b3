"""``jmxlake maintain`` and ``jmxlake unit``."""

from __future__ import annotations

import datetime as dt
import re
import signal
import sys
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lakehouse.commands.common import GOLD_OR_NONE, OPTIONS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.maintain.place import Place
    from lakehouse.maintain.state import Reach

_FAILED: Final = 1
_REFUSED: Final = 3
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _length(text: str) -> int:
    """Seconds of a length of time."""
    match = re.fullmatch(r"([1-9][0-9]*)([smhd])", text)
    if match is None:
        raise click.BadParameter(f"{text!r} is no length of time: write 30s, 1m, 2h or 400d")
    return int(match[1]) * _SECONDS[match[2]]


def _until(text: str) -> dt.date | None:
    """A date, or None for never."""
    try:
        return None if text == "never" else dt.date.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is neither a date such as 2026-11-16 nor 'never'"
        ) from error


def _version(text: str) -> tuple[str, int]:
    """A table's name and a version of it."""
    from lakehouse import tables

    name, _, version = text.partition("@")
    if name not in {one.name for one in tables.BRONZE} or not version.isdecimal():
        raise click.BadParameter(f"{text!r}: write a table of bronze and a version, as runs@1234")
    return name, int(version)


@click.command(short_help="Keep bronze small and quick.")
@click.argument("lake", metavar="LAKE")
@click.option("--once", is_flag=True, help="One round, then end (the default).")
@click.option("--every", type=_length, metavar="LENGTH", help="Go on: a round every so often.")
@click.option("--dry-run", is_flag=True, help="Say what a round would do; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Plan and log as JSON.")
@OPTIONS_FILE
@click.option(
    "--keep", type=_length, metavar="LENGTH", default="400d", show_default=True,
    help="Remove dates of bronze older than that, if they are rolled up.",
)  # fmt: skip
@GOLD_OR_NONE
@click.option(
    "--read-until", type=_until, default="never", metavar="DATE|never", show_default=True,
    help="With --gold none: all that was committed before DATE (UTC) is rolled up.",
)  # fmt: skip
@click.option(
    "--accept", type=_version, multiple=True, metavar="TABLE@VERSION",
    help="You have looked at what another engine committed to TABLE up to VERSION.",
)  # fmt: skip
def maintain(  # noqa: PLR0913 - a click command
    lake: str, every: int | None, options_file: Path | None, keep: int, gold: str | None,
    read_until: dt.date | None, accept: Sequence[tuple[str, int]],
    *, once: bool, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Keep the bronze tables of LAKE small and quick: checkpoint, compact, clean up.

    Safe while agents write. Ends with 1 where something failed, and with 3 where a table is
    refused: another engine wrote to it, or it is no table of this version.
    """
    if every is not None and (once or dry_run):
        raise click.UsageError("--every goes on for ever: give it without --once and --dry-run")
    if read_until is not None and gold != "none":
        raise click.UsageError("--read-until goes with --gold none")
    if keep < _SECONDS["d"]:
        raise click.UsageError("--keep: write at least 1d")
    from lakehouse.maintain import display, place
    from lakehouse.maintain.service import REFUSED, Maintenance, Rules, serve
    from lakehouse.maintain.work import Work

    where = place.at(lake, options_file)
    maintenance = Maintenance(
        where,
        Work(where, uuid.uuid4().hex),
        _reach(where, gold, read_until),
        Rules(keep // _SECONDS["d"], dict(accept)),
        lambda: dt.datetime.now(dt.UTC),
        display.teller(as_json=as_json),
    )
    if dry_run:
        try:
            display.show_plans(maintenance.plans(), as_json=as_json)
        except REFUSED as error:
            click.echo(f"jmxlake: {error}", err=True)
            sys.exit(_REFUSED)
        return
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if every is not None:
        serve(maintenance, every, stop)
    elif wrong := maintenance.round(stop):
        sys.exit(_REFUSED if any(isinstance(one, REFUSED) for one in wrong) else _FAILED)


@click.command(short_help="Print the systemd unit of the maintenance.")
def unit() -> None:
    """Print the unit for systemd that runs the maintenance as a service."""
    import sysconfig

    name = "systemd/jmxlake-maintain.service"
    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    folder = checkout if checkout.is_dir() else installed
    click.echo((folder / name).read_text("utf-8"), nl=False)


def _reach(where: Place, gold: str | None, read_until: dt.date | None) -> Callable[[], Reach]:
    from lakehouse.maintain import state

    if gold == "none":
        return lambda: state.by_date(where, read_until)
    return lambda: state.by_progress(gold or f"{where.root}/gold", where.options)
