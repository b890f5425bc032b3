"""``jmxlake explain``."""

import json
from typing import Any

import click

from lakehouse.cli import options
from lakehouse.cli.phases import phase
from lakehouse.cli.reports.statement_options import CALENDAR, PERIOD, StatementOptions
from lakehouse.explain.story import explain as build_story
from lakehouse.explain.terminal import view
from lakehouse.report import owners


@click.command
@options.lake_options()
@click.argument("subject")
@PERIOD
@CALENDAR
@click.option(
    "--time-zone", metavar="ZONE",
    help="Time zone of the output, such as Europe/Berlin. Default: UTC.",
)  # fmt: skip
@options.CLUSTER
@options.OWNERS
@options.MIN_COVERAGE
@options.AS_JSON
def explain(lake: options.LakeOptions, subject: str, *, as_json: bool, **given: Any) -> None:
    """Show a week of one topic, client, group or broker.

    It shows events, incidents and gaps in time order. SUBJECT is a name such as orders, orders/3,
    alice/billing, client:billing, group:nightly or broker-1. The prefixes topic:, client:, user:,
    group: and broker: specify its type.

    Default: the week of the weekly report, or the last week with data of the subject.
    """
    asked = StatementOptions(lake, given)
    file = given["owners_file"]
    owned = owners.NO_OWNERS if file is None else owners.load(file)
    engine = lake.engine()
    with phase("timeline"):
        asked.check(engine)
        story = build_story(
            engine, asked.objectives, subject, asked.given, calendar=asked.calendar,
            cluster=asked.cluster, min_coverage=asked.min_coverage, owners=owned,
        )  # fmt: skip
    # ASCII, because some other characters control a terminal.
    click.echo(json.dumps(story, indent=1) if as_json else view(story), nl=as_json)
