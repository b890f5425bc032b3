"""``jmxlake weekly``: all that a week's end asks for, in one go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakehouse.commands.common import ENGINE, LAKE, rolling, tell, unless_held
from lakehouse.commands.report import OUTPUTS, QUESTION
from lakehouse.commands.rollup import TIDY, WINDOW, done, rolled_up, window_seconds
from lakehouse.commands.sla import stated, summed_up
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from lakehouse.commands.reporting import Facts, Outputs
    from lakehouse.send.settings import Settings


@click.command(short_help="Roll up, state, report and send a week, in one go.")
@LAKE
@QUESTION
@OUTPUTS
@click.option(
    "--every-cluster", type=click.Path(file_okay=False, path_type=Path), metavar="FOLDER",
    help="Write page and facts of every cluster of the lake into this folder.",
)  # fmt: skip
@click.option(
    "--send", "settings_file", type=click.Path(dir_okay=False, path_type=Path),
    metavar="SETTINGS.yaml", help="Send each report, as jmxlake send does it by these settings.",
)  # fmt: skip
@ENGINE
@WINDOW
@TIDY
def weekly(
    lake: str, *, every_cluster: Path | None, settings_file: Path | None, engine: str | None,
    window: str | None, tidy: str, **asked: Any,
) -> None:  # fmt: skip
    """Roll LAKE up, state the last week that has ended in gold/sla, report it, and send that.

    It does what jmxlake rollup, sla, report and send do one after the other; where it failed, run
    it again: what is rolled up and stated stays so, and what was sent is sent again. In a lake's
    first week it is about that one.

    Ends with 1 where it failed, with 3 where another rollup of this lake is at work.
    """
    from lakehouse.commands.reporting import Outputs, Question
    from lakehouse.rollup import Wanted
    from lakehouse.send import settings

    outputs, question = Outputs(asked), Question(asked)
    if every_cluster is not None and any((*outputs.places, question.cluster)):
        raise click.UsageError("--every-cluster goes with no other output, and without --cluster")
    if settings_file is not None and str(asked["json_file"]) == "-":
        raise click.UsageError("--json - goes without --send, which says what it sent")
    how = None if settings_file is None else settings.load(settings_file)
    seconds = window_seconds(window)

    used = rolling(lake, asked["gold"], asked["options_file"], engine)
    for line in done(rolled_up(used, question.objectives, Wanted(tidy=tidy), seconds)):
        tell(line)
    period = question.period(used)
    with unless_held():
        planned = question.calendar.maintenance
        tell(summed_up(*stated(used, question.objectives, period, planned)))
    failed: list[str] = []
    try:
        for facts in question.facts(used, period, every=every_cluster is not None):
            failed += _reported(facts, outputs, every_cluster, how)
    except LakehouseError as error:
        failed.append(str(error))
    if failed:
        raise LakehouseError("; ".join(failed))


def _reported(
    facts: Facts, outputs: Outputs, every_cluster: Path | None, how: Settings | None
) -> list[str]:
    """Write and send a report; why that failed, for the others are to be had all the same."""
    from lakehouse.commands.reporting import write_of_cluster
    from lakehouse.commands.send import sent

    try:
        told = outputs.part(facts)
        if every_cluster is None:
            outputs.write(told)
        else:
            write_of_cluster(told, every_cluster, with_page=True)
        if how is not None:
            sent(told, how)
    except LakehouseError as error:
        return [str(error)]
    return []
