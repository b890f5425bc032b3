"""``jmxlake sla``: whether objectives were met, and what is left of their budgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lakehouse.commands.common import (
    GOLD,
    LAKE,
    OBJECTIVES,
    OPTIONS_FILE,
    PERIOD,
    opened,
    period_asked,
    tell,
    unless_held,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.maintenance import Maintenance
    from lakehouse.periods import Period
    from lakehouse.rollup.engine import Engine
    from lakehouse.slo import Objective
    from lakehouse.statement import Statement

MAINTENANCE: Final = click.option(
    "--maintenance", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
    help="YAML of planned maintenance: figures are told with it and without.",
)  # fmt: skip
LABELS: Final = click.option(
    "--label", "labels", multiple=True, metavar="KEY[=VALUE]",
    help="Only objectives that bear the label; may be given several times.",
)  # fmt: skip


@click.command(short_help="State in gold/sla whether objectives were met.")
@LAKE
@GOLD
@OBJECTIVES
@PERIOD
@LABELS
@MAINTENANCE
@OPTIONS_FILE
@click.option("--json", "as_json", is_flag=True, help="Tell every statement as JSON.")
def sla(  # noqa: PLR0913, PLR0917 - a click command
    lake: str, gold: str | None, objectives: Path | None, week: str | None, start: str | None,
    end: str | None, labels: Sequence[str], maintenance: Path | None, options_file: Path | None, *,
    as_json: bool,
) -> None:  # fmt: skip
    """State attainment in gold/sla, by default of the last week that has ended.

    In a lake's first week it is that one.

    Of a week, each objective is stated over the window of its own: a rolling one that ends with
    the week, or the last of its calendar that ended in it (else the one under way). Of --from and
    --to all are stated over just that.

    Ends with 1 where it failed, with 3 where a rollup of this lake is at work.
    """
    from lakehouse import maintenance as planned, partitions, slo, weighted
    from lakehouse.gold_rows import GoldRows, window_of

    wanted = slo.chosen(slo.load(objectives or slo.SHIPPED), dict(map(label, labels)))
    windows = planned.load(maintenance) if maintenance else ()
    asked = period_asked(week, start, end)
    engine = opened(lake, gold, options_file)
    period = asked(engine)
    with unless_held():
        found, fresh = stated(engine, wanted, period, windows, burns=as_json)
    if as_json:
        rows = GoldRows(engine, window_of(engine) * 1_000_000)
        together = [*weighted.by_cluster(found), *partitions.by_topic(rows, found)]
        told = {
            "statements": [_statement(one) for one in found],
            "weighted": [one.told() for one in together],
            "new": len(fresh),
        }
        click.echo(json.dumps(told, indent=1))
    else:
        click.echo(summed_up(found, fresh))


def stated(
    engine: Engine,
    objectives: Sequence[Objective],
    period: Period,
    planned: tuple[Maintenance, ...],
    *,
    burns: bool = False,
) -> tuple[list[Statement], list[Statement]]:
    """What is stated over a period, published; and what of it is new."""
    from lakehouse import sla as slas, sla_published
    from lakehouse.gold_rows import window_of

    seconds = window_of(engine)
    period = period.aligned(seconds)
    tell("statements")
    manner = slas.Manner(period.grain == "1w", burns, planned, seconds)
    found = slas.read(engine, objectives, period, slas.now_us(), manner=manner)
    return found, sla_published.publish(engine, found, period)


def summed_up(found: Sequence[Statement], fresh: Sequence[Statement]) -> str:
    """How many statements there are, in a line."""
    return f"{len(found)} statements, {len(fresh)} of them new or changed"


def label(text: str) -> tuple[str, str]:
    """A label and its value; an empty one stands for any."""
    key, _, value = text.partition("=")
    return key, value


def _statement(one: Statement) -> dict[str, Any]:
    named = {"cluster": one.subject.cluster, "objective": one.objective.name}
    subject = {**one.subject.names, "partition": one.subject.partition}
    return {**named, **subject, **one.figures(), **one.over(), **one.more()}
