"""``jmxlake weekly``: rollup, sla, report and send in one command."""

from pathlib import Path
from typing import Any

import click

from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions, kept_in, log
from lakehouse.cli.phases import phase
from lakehouse.cli.reports.report import OPTIONS, ReportOutputs, facts_of
from lakehouse.cli.reports.send import LINK, send_report, with_link
from lakehouse.cli.reports.sla import count_line
from lakehouse.cli.reports.statement_options import StatementOptions
from lakehouse.cli.reports.weekly_config import CONFIG, PRINT_CONFIG, settings_in
from lakehouse.cli.rollup import TIDY, WINDOW, outcome_lines, roll_up
from lakehouse.errors import LakehouseError
from lakehouse.report.send.settings import load
from lakehouse.rollup.plan import Wanted


@click.command
@options.lake_options()
@OPTIONS
@click.option(
    "--every-cluster", type=options.FOLDER, metavar="FOLDER",
    help="Write page and facts of every cluster of the lake to this folder.",
)  # fmt: skip
@click.option(
    "--send", "settings_file", type=options.FILE, metavar="SETTINGS.yaml",
    help="Send each report, as jmxlake send does with these settings.",
)  # fmt: skip
@LINK
@options.ENGINE
@WINDOW
@TIDY
@CONFIG
@PRINT_CONFIG
def weekly(
    lake: LakeOptions, *, every_cluster: Path | None, settings_file: Path | None, link: str | None,
    engine: str | None, window: int | None, tidy: str, **given: Any,
) -> None:  # fmt: skip
    """Roll LAKE up, publish the last week that has ended in gold/sla, report and send it.

    It runs jmxlake rollup, sla, report and send one after the other. If it failed, run it again:
    what is rolled up and published is kept, and what was sent is sent again. In the first week of
    a lake it reports that week. {week} and {cluster} in names of files and in the link are filled
    in.

    Exits with 1 if it failed, with 3 if another rollup of this lake is running.
    """
    loaded = (
        settings_in(click.get_current_context()) if settings_file is None else load(settings_file)
    )
    outputs, asked = ReportOutputs(given), StatementOptions(lake, given)
    if every_cluster is not None and any((*outputs.places, asked.cluster)):
        raise click.UsageError("--every-cluster goes without other outputs and --cluster")
    if loaded is not None and str(given["json_file"]) == "-":
        raise click.UsageError("--json - goes without --send, which prints what it sent")
    if link is not None and loaded is None:
        raise click.UsageError("--link is for messages, and needs --send")
    loaded = None if loaded is None else with_link(loaded, link)

    used = lake.rollup_engine(engine)
    wanted = Wanted(tidy=tidy, check_files=True)
    _, *others = outcome_lines(roll_up(used, asked.objectives, wanted, window))
    for line in others:
        log(line)
    period = asked.period(used)
    with phase("objectives") as shown:
        shown.result = count_line(*asked.publish(used, asked.objectives, period, burns=False))
    errors: list[str] = []
    with kept_in(errors):
        for facts in facts_of(asked, used, period, every=every_cluster is not None):
            with kept_in(errors):
                written = outputs.write(facts, every_cluster, with_page=True)
                if loaded is not None:
                    with phase("send"):
                        send_report(written, loaded)
    if errors:
        raise LakehouseError("; ".join(errors))
