"""``jmxlake sla``: attainment of objectives, and what is left of their error budgets."""

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from lakehouse import slo
from lakehouse.cli import options
from lakehouse.cli.options import LakeOptions, exit_if_locked, log
from lakehouse.core import periods
from lakehouse.core.display import plural
from lakehouse.core.periods import Period
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import GoldRows, window_of
from lakehouse.errors import MaintenanceFileError
from lakehouse.report.facts.build import last_week
from lakehouse.slo import attainment, cluster_level, each_partition, published
from lakehouse.slo.calendar import business_hours, corrections, maintenance
from lakehouse.slo.calendar.calendar import Calendar
from lakehouse.slo.sla_statement import Statement

MAINTENANCE: Final = click.option(
    "--maintenance", metavar="FILE", type=options.FILE,
    help="YAML of planned maintenance: figures are reported with it and without.",
)  # fmt: skip
CORRECTIONS: Final = click.option(
    "--corrections", metavar="FILE", type=options.FILE,
    help="YAML of time that was agreed not to count: an agreed verdict stands beside each.",
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
@CORRECTIONS
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
    query = Query(lake, given)
    wanted = slo.chosen(query.objectives, dict(labels))
    engine = lake.engine()
    with exit_if_locked():
        statements, fresh = query.publish(engine, wanted, query.period(engine), burns=as_json)
    if not as_json:
        click.echo(count_line(statements, fresh))
        return
    rows = GoldRows(engine, window_of(engine) * 1_000_000)
    together = [*cluster_level.by_cluster(statements), *each_partition.by_topic(rows, statements)]
    output = {
        "statements": [_to_json(statement) for statement in statements],
        "weighted": [one.to_json() for one in together],
        "new": len(fresh),
    }
    click.echo(json.dumps(output, indent=1))


class Query:
    """Objectives, period and calendar of statements and of reports.

    Args:
        lake: The lake.
        given: The options that say them; a wrong one fails before an engine starts.

    Raises:
        MaintenanceFileError: Planned maintenance or corrections are malformed; a line is printed
            for each of the latter.
    """

    def __init__(self, lake: LakeOptions, given: Mapping[str, Any]) -> None:
        self.objectives = lake.objectives()
        zone, hours = given.get("time_zone") or periods.UTC_NAME, given.get("business_hours")
        self.period = _period(given, periods.time_zone(zone))
        business = None if hours is None else business_hours.parse(hours)
        planned = maintenance.load(given["maintenance"]) if given["maintenance"] else ()
        file = given["corrections"]
        corrected, faults = corrections.load(file) if file else ((), [])
        _refuse(faults)
        self.calendar = Calendar(zone, business, planned, corrected)
        self.cluster: str | None = given.get("cluster")

    def check(self, engine: Engine) -> None:
        """Compare corrections with the objectives and the subjects that there are.

        Raises:
            MaintenanceFileError: Some do not fit; a line is printed for each.
        """
        if corrected := self.calendar.corrections:
            known, now_us = attainment.subjects(engine), attainment.now_us()
            _refuse(list(corrections.check(corrected, self.objectives, known, now_us)))

    def publish(
        self, engine: Engine, wanted: Sequence[slo.Objective], period: Period, *, burns: bool
    ) -> tuple[list[Statement], list[Statement]]:
        """Publish the statements of a period; returns all of them, and those that are new."""
        self.check(engine)
        seconds = window_of(engine)
        period = period.aligned(seconds)
        log("statements")
        planned, corrected = self.calendar.maintenance, self.calendar.corrections
        how = attainment.Options(period.grain == periods.WEEK, burns, planned, corrected, seconds)
        statements = attainment.read(engine, wanted, period, attainment.now_us(), options=how)
        again: list[Statement] = []
        fresh = published.publish(engine, statements, period, again)
        for one in corrected:
            if number := sum(one in statement.corrections for statement in again):
                what = f"{plural(number, 'published statement')} restated; both are kept and shown"
                log(one.says(what.replace("\u00a0", " "), kind="note"))
        return statements, fresh


def _period(given: Mapping[str, Any], zone: dt.tzinfo) -> Callable[[Engine], Period]:
    """The period of the options of ``PERIOD``; by default the last week that has ended."""
    week, start, end = given["week"], given["start"], given["end"]
    if week is not None and (start or end):
        raise click.UsageError("give --week, or --from and --to, not both")
    if week is not None:
        period = periods.week(week, zone)
    elif bounds := options.both(start, end):
        period = periods.span(*bounds, zone)
    else:
        return lambda engine: last_week(engine, attainment.now_us(), zone)
    return lambda _: period


def _refuse(faults: Sequence[str]) -> None:
    for fault in faults:
        log(fault)
    if faults:
        raise MaintenanceFileError("no statement was made or published; correct the file first")


def count_line(statements: Sequence[Statement], fresh: Sequence[Statement]) -> str:
    """Numbers of statements, in a line."""
    return f"{len(statements)} statements, {len(fresh)} of them new or changed"


def _to_json(one: Statement) -> dict[str, Any]:
    named = {"cluster": one.subject.cluster, "objective": one.objective.name}
    subject = {**one.subject.names, "partition": one.subject.partition}
    return {**named, **subject, **one.figures(), **one.scope(), **one.details()}
