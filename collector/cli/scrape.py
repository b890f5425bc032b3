"""``jmxlake-agent scrape``: one scrape of every family, printed."""

import json
from collections.abc import Iterable
from pathlib import Path

import click

from collector.agent import plan
from collector.agent.plan import Task
from collector.cli.command import CONFIG, JSON, Step, guarded, warn
from collector.cli.format import new_table, setting, show, styled, subject
from collector.cli.read_families import attempt, found
from collector.config.schema import Config
from collector.errors import SourceError
from collector.model import Reading, Scrape, Series
from lakehouse.tables.error_text import printable

_MOST = 10


@click.command
@CONFIG
@JSON
@click.option(
    "--all", "show_all", is_flag=True, help=f"Print all series instead of {_MOST} per metric."
)
def scrape(path: Path, *, as_json: bool, show_all: bool) -> None:
    """Scrape once and print non-zero values.

    It does not store data. With --json, each family is an object with outcome, error, beans and
    seconds. The values of the family follow it, one object each.
    """

    def work(config: Config) -> None:
        missing: list[Step] = []
        config = found(config, missing.append)
        loaded = plan.catalogue(config)
        read = [(task, attempt(task)) for task in plan.tasks(config, loaded, plan.scrapers(config))]
        if as_json:
            _print_lines(scrape for _, scrape in read)
        else:
            _print_table(read, most=None if show_all else _MOST)
        for step in missing:
            warn(step)
        failed = sum(scrape.outcome != "ok" for _, scrape in read) + len(missing)
        if failed:
            noun = "families or sources" if missing else "families"
            raise SourceError(f"{failed} {noun} could not be read; see above")

    guarded(path, work)


def _print_lines(scrapes: Iterable[Scrape]) -> None:
    for scrape in scrapes:
        family, answer = {"source": scrape.source, "family": scrape.family}, scrape.answer
        ended = {"outcome": scrape.outcome, "error": scrape.error}
        took = {"beans": answer.beans if answer else None, "seconds": _seconds(scrape)}
        click.echo(json.dumps({**family, **ended, **took}))
        for reading in answer.readings if answer else ():
            for series, value in sorted(reading.values.items(), key=str):
                parts = series._asdict().items()
                subject = {key: part for key, part in parts if part not in (None, ())}
                click.echo(json.dumps({**family, **subject, "value": value}))


def _print_table(read: list[tuple[Task, Scrape]], most: int | None) -> None:
    table = new_table("Family and metric", "Series", "Value", right=2)
    several = len({task.source for task, _ in read}) > 1
    for task, scrape in read:
        family, answer = task.family, scrape.answer
        name = styled(task.label if several else family.name, "bold")
        if answer is None or scrape.outcome != "ok":
            why = printable(f"UNKNOWN, {scrape.outcome}: {scrape.error or 'no reason given'}")
            table.add_row(name, styled(why, "bold red"))
            continue
        found = {one.metric: _worst(one) for one in answer.readings}
        total = f"ok, {sum(map(len, found.values())):,} of {answer.beans:,} beans are not zero"
        took = styled(f"{_seconds(scrape):.3f} s", "dim")
        table.add_row(name, styled(total, "green"), took)
        units = {metric.name: metric.unit for metric in family.metrics}
        for metric, worst in found.items():
            for series, value in worst[:most]:
                amount = setting(metric, value, units.get(metric, "1"))
                table.add_row(*map(styled, (f"  {metric}", subject(series), amount)))
            if most is not None and len(worst) > most:
                more = f"and {len(worst) - most:,} more: --all shows them"
                table.add_row(styled(f"  {metric}"), styled(more))
    show(table)


def _seconds(scrape: Scrape) -> float:
    return round((scrape.answered_us - scrape.asked_us) / 1e6, 6)


def _worst(reading: Reading) -> list[tuple[Series, float]]:
    """Return the series that are not zero, largest first."""
    known = [(series, value) for series, value in reading.values.items() if value is not None]
    return sorted(known, key=lambda item: (-item[1], str(item[0])))
