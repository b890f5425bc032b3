"""``jmxlake explain``."""

import json

import click

from lakehouse.cli import options
from lakehouse.core import periods
from lakehouse.core.observed_share import FLOOR_PERCENT
from lakehouse.explain.story import explain as build_story
from lakehouse.explain.terminal import view


@click.command
@options.lake_options()
@click.argument("subject")
@click.option(
    "--week", metavar="YYYY-Www",
    help="An ISO week, such as 2026-W47. Default: the week of the weekly report.",
)  # fmt: skip
@click.option(
    "--time-zone", default=periods.UTC_NAME, show_default=True, metavar="ZONE",
    help="Time zone of the week, such as Europe/Berlin.",
)  # fmt: skip
@options.CLUSTER
@options.MIN_COVERAGE
@options.AS_JSON
def explain(
    lake: options.LakeOptions, subject: str, week: str | None, time_zone: str, cluster: str | None,
    min_coverage: float | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Explain a week of one topic, partition, client, group or broker.

    SUBJECT is a name such as orders, orders/3, alice/billing, client:billing, group:nightly or
    broker-1; the prefixes topic:, client:, user:, group: and broker: give its kind.
    """
    objectives = lake.objectives()
    zone = periods.time_zone(time_zone)
    period = zone if week is None else periods.week(week, zone)
    engine = lake.engine()
    options.log("the subject's rows")
    floor = FLOOR_PERCENT if min_coverage is None else min_coverage
    story = build_story(engine, objectives, subject, period, cluster=cluster, min_coverage=floor)
    # As ASCII: some other characters control a terminal.
    click.echo(json.dumps(story, indent=1) if as_json else view(story), nl=as_json)
