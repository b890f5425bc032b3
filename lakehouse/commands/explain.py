"""``jmxlake explain``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from lakehouse.commands.common import AS_JSON, GOLD, LAKE, OBJECTIVES, OPTIONS_FILE, opened, tell

if TYPE_CHECKING:
    from pathlib import Path


@click.command(short_help="One topic's, client's or broker's week as a story.")
@LAKE
@click.argument("subject")
@GOLD
@OBJECTIVES
@click.option(
    "--week",
    metavar="YYYY-Www",
    help="An ISO week, such as 2026-W47; by default that of what was seen last.",
)
@click.option("--cluster", help="Which cluster, if several have such a subject.")
@OPTIONS_FILE
@AS_JSON
def explain(  # noqa: PLR0913 - a click command
    lake: str, subject: str, gold: str | None, objectives: Path | None, week: str | None,
    cluster: str | None, *, options_file: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Tell the story of one topic, partition, client, group or broker in a week.

    SUBJECT is a name such as orders, orders/3, alice/billing, client:billing, group:nightly or
    broker-1; topic:, client:, user:, group: and broker: before it say which one is meant.
    """
    from lakehouse import periods, slo
    from lakehouse.explain.facts import explain as tell_of
    from lakehouse.explain.terminal import view
    from lakehouse.report.facts import latest_week

    wanted = slo.load(objectives or slo.SHIPPED)
    period = None if week is None else periods.week(week)
    engine = opened(lake, gold, options_file)
    period = period or latest_week(engine)
    tell("the subject's rows")
    told = tell_of(engine, wanted, subject, period, cluster=cluster)
    # What is not ASCII is spelt out: a terminal obeys some of it.
    click.echo(json.dumps(told, indent=1) if as_json else view(told), nl=as_json)
