"""``jmxlake sla``: attainment of objectives, and what is left of their error budgets."""

import json
from collections.abc import Sequence
from typing import Any

import click

from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions
from lakehouse.cli.phases import phase
from lakehouse.cli.reports.statement_options import CALENDAR, PERIOD, StatementOptions
from lakehouse.engines.gold_reader import GoldRows, window_of
from lakehouse.slo import levels
from lakehouse.slo.sla_statement import Statement


@click.command
@options.lake_options()
@PERIOD
@options.LABELS
@CALENDAR
@options.AS_JSON
def sla(
    lake: LakeOptions, labels: Sequence[tuple[str, str]], *, as_json: bool, **given: Any
) -> None:
    """Publish attainment in gold/sla, by default of the last week that has ended.

    In the first week of a lake it is that week.

    With --week, each objective has its own window: a rolling one that ends with the week, or the
    last calendar window that ended in it (else the current one). With --from and --to, all have
    just that period.

    Exits with 1 if it failed, with 3 if a rollup of this lake is running.
    """
    asked = StatementOptions(lake, given)
    chosen = [one for one in asked.objectives if one.has(dict(labels))]
    engine = lake.engine()
    with phase("objectives"):
        statements, fresh = asked.publish(engine, chosen, asked.period(engine), burns=as_json)
    if not as_json:
        click.echo(count_line(statements, fresh))
        return
    rows = GoldRows(engine, window_of(engine) * 1_000_000)
    together = [*levels.by_cluster(statements), *levels.by_topic(rows, statements)]
    output = {
        "statements": [_to_json(statement) for statement in statements],
        "weighted": [one.to_json() for one in together],
        "new": len(fresh),
    }
    click.echo(json.dumps(output, indent=1))


def count_line(statements: Sequence[Statement], fresh: Sequence[Statement]) -> str:
    """Numbers of statements, in a line."""
    return f"{len(statements)} statements, {len(fresh)} of them new or changed"


def _to_json(one: Statement) -> dict[str, Any]:
    named = {"cluster": one.subject.cluster, "objective": one.objective.name}
    subject = {**one.subject.names, "partition": one.subject.partition}
    return {**named, **subject, **one.figures(), **one.scope(), **one.details()}
