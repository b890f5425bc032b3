"""``jmxlake sla``: attainment of objectives, and what is left of their error budgets."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from lakehouse import slo
from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions, exit_if_locked, log
from lakehouse.core.time.periods import Period
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import GoldRows, window_of
from lakehouse.slo import aggregate, attainment, maintenance as planned_work, partitions, published
from lakehouse.slo.maintenance import Maintenance
from lakehouse.slo.statement import Statement

MAINTENANCE: Final = click.option(
    "--maintenance", metavar="FILE", type=options.FILE,
    help="YAML of planned maintenance: figures are reported with it and without.",
)  # fmt: skip


def _label(text: str) -> tuple[str, str]:
    """Key and value of a label; an empty value means any."""
    key, _, value = text.partition("=")
    return key, value


LABELS: Final = click.option(
    "--label", "labels", type=_label, multiple=True, metavar="KEY[=VALUE]",
    help="Only objectives with this label; may be given several times.",
)  # fmt: skip


@click.command
@options.lake_options()
@options.PERIOD
@LABELS
@MAINTENANCE
@options.AS_JSON
def sla(
    lake: LakeOptions, week: str | None, start: str | None, end: str | None,
    labels: Sequence[tuple[str, str]], maintenance: Path | None, *, as_json: bool,
) -> None:  # fmt: skip
    """Publish attainment in gold/sla, by default of the last week that has ended.

    In the first week of a lake it is that week.

    With --week, each objective has its own window: a rolling one that ends with the week, or the
    last calendar window that ended in it (else the current one). With --from and --to, all have
    just that period.

    Exits with 1 if it failed, with 3 if a rollup of this lake is running.
    """
    wanted = slo.chosen(lake.objectives(), dict(labels))
    windows = planned_work.load(maintenance) if maintenance else ()
    period = options.period_of(week, start, end)
    engine = lake.engine()
    with exit_if_locked():
        statements, fresh = publish_statements(
            engine, wanted, period(engine), windows, burns=as_json
        )
    if not as_json:
        click.echo(count_line(statements, fresh))
        return
    rows = GoldRows(engine, window_of(engine) * 1_000_000)
    together = [*aggregate.by_cluster(statements), *partitions.by_topic(rows, statements)]
    output = {
        "statements": [_to_json(statement) for statement in statements],
        "weighted": [one.to_json() for one in together],
        "new": len(fresh),
    }
    click.echo(json.dumps(output, indent=1))


def publish_statements(
    engine: Engine,
    objectives: Sequence[slo.Objective],
    period: Period,
    planned: tuple[Maintenance, ...],
    *,
    burns: bool = False,
) -> tuple[list[Statement], list[Statement]]:
    """Publish the statements of a period; returns all of them, and those that are new."""
    seconds = window_of(engine)
    period = period.aligned(seconds)
    log("statements")
    options = attainment.Options(period.grain == "1w", burns, planned, seconds)
    now_us = attainment.now_us()
    statements = attainment.read(engine, objectives, period, now_us, options=options)
    return statements, published.publish(engine, statements, period)


def count_line(statements: Sequence[Statement], fresh: Sequence[Statement]) -> str:
    """Numbers of statements, in a line."""
    return f"{len(statements)} statements, {len(fresh)} of them new or changed"


def _to_json(one: Statement) -> dict[str, Any]:
    named = {"cluster": one.subject.cluster, "objective": one.objective.name}
    subject = {**one.subject.names, "partition": one.subject.partition}
    return {**named, **subject, **one.figures(), **one.scope(), **one.details()}
