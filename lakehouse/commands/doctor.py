"""``jmxlake doctor``: what is wrong with a lake, and what to do."""

from __future__ import annotations

import datetime as dt
import json
import sys
from typing import TYPE_CHECKING, Final

import click

from lakehouse.commands.common import GOLD_OR_NONE, LAKE, OPTIONS_FILE
from lakehouse.doctor.finding import LATE

if TYPE_CHECKING:
    from pathlib import Path

_FOUND: Final = 4
_LATE_MINUTES: Final = LATE // dt.timedelta(minutes=1)


@click.command(short_help="Say what is wrong with a lake, and what to do.")
@LAKE
@click.option("--json", "as_json", is_flag=True, help="Tell what was found as JSON.")
@click.option(
    "--days", type=click.IntRange(1, 400), default=7, show_default=True,
    help="How far back to look at what agents told.",
)  # fmt: skip
@click.option(
    "--late", type=click.IntRange(1), metavar="MINUTES", default=_LATE_MINUTES, show_default=True,
    help="An agent that told nothing for so long is silent. Give more than 12 minutes, or 22 with "
    "commit_interval: 15m.",
)  # fmt: skip
@OPTIONS_FILE
@GOLD_OR_NONE
def doctor(
    lake: str, days: int, late: int, options_file: Path | None, gold: str | None, *, as_json: bool
) -> None:
    """Look at LAKE and say what is wrong with it, where, and what to do; nothing is changed.

    Needs no Spark. Ends with 0 where all is well, with 1 where the lake could not be looked at,
    with 4 where there is an error or a warning.
    """
    from importlib.metadata import version

    from lakehouse.doctor import display
    from lakehouse.doctor.diagnosis import Question, examine
    from lakehouse.maintain import place

    where = place.at(lake, options_file, None if gold == "none" else gold)
    now, patience = dt.datetime.now(dt.UTC), dt.timedelta(minutes=late)
    found = examine(
        Question(where, now, days, patience, version("jmxlake"), with_gold=gold != "none")
    )
    told = json.dumps(display.as_json(found), indent=1) if as_json else display.shown(found)
    click.echo(told, nl=as_json)
    if not found.good:
        sys.exit(_FOUND)
