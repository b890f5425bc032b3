"""``jmxlake weekly``: rollup, slo publish, report and send in one command."""

from pathlib import Path
from typing import Any

import click

from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions, kept_in, log
from lakehouse.cli.phases import phase
from lakehouse.cli.reports.report import OPTIONS, ReportOutputs, facts_of
from lakehouse.cli.reports.send import LINK, send_report, with_link
from lakehouse.cli.reports.statement_options import StatementOptions, count_line
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
    help="Output folder for the HTML and JSON report of each cluster.",
)  # fmt: skip
@click.option(
    "--send", "settings_file", type=options.FILE, metavar="SETTINGS.yaml",
    help="Send each report with these settings (see jmxlake send).",
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
    """Roll up, publish SLO results, report and send a week.

    It runs jmxlake rollup, slo publish, report and send for the last complete week, or for the
    current week if it is the first one of the lake. If it fails, run it again: it keeps completed
    steps, but it repeats messages. {week} and {cluster} in file names and in the link are
    placeholders.

    It exits with 1 if it failed, and with 3 if another rollup of LAKE is running.
    """
    loaded = (
        settings_in(click.get_current_context()) if settings_file is None else load(settings_file)
    )
    outputs, asked = ReportOutputs(given), StatementOptions(lake, given)
    if every_cluster is not None and any((*outputs.places, asked.cluster)):
        raise click.UsageError("--every-cluster cannot be combined with other outputs or --cluster")
    if loaded is not None and str(given["json_file"]) == "-":
        raise click.UsageError("--json - cannot be combined with --send, which prints to stdout")
    if link is not None and loaded is None:
        raise click.UsageError("--link requires --send")
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
