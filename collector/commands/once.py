"""``jmxlake-agent once``: everything read once and shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from collector.commands.common import CONFIG, JSON, guarded
from collector.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rich.text import Text

    from collector.catalogue import Family
    from collector.samples import Reading, Scrape, Series
    from collector.sections import Config

_MOST = 10


@click.command(short_help="Read everything once and print what is not zero.")
@CONFIG
@JSON
@click.option("--all", "show_all", is_flag=True, help=f"Show more than {_MOST} series a metric.")
def once(path: Path, *, as_json: bool, show_all: bool) -> None:
    """Read everything once and print what is not zero; nothing is kept.

    With --json: of each family an object with outcome, error, beans and seconds, then its values.
    """
    from collector import planning
    from collector.commands.attempts import attempt

    def work(config: Config) -> None:
        loaded = planning.catalogue(config)
        read = [
            (task.family, attempt(task))
            for task in planning.tasks(config, loaded, planning.scrapers(config))
        ]
        if as_json:
            _print_lines(scrape for _, scrape in read)
        else:
            _print_table(read, most=None if show_all else _MOST)
        failed = sum(scrape.outcome != "ok" for _, scrape in read)
        if failed:
            raise SourceError(f"{failed} families could not be read; see above")

    guarded(path, work)


def _print_lines(scrapes: Iterable[Scrape]) -> None:
    for scrape in scrapes:
        family = {
            "family": scrape.family,
            "outcome": scrape.outcome,
            "error": scrape.error,
            "beans": scrape.answer.beans if scrape.answer else None,
            "seconds": _seconds(scrape),
        }
        click.echo(json.dumps(family))
        for reading in scrape.answer.readings if scrape.answer else ():
            for series, value in sorted(reading.values.items(), key=str):
                subject = {
                    key: part for key, part in series._asdict().items() if part not in (None, ())
                }
                click.echo(json.dumps({"family": scrape.family, **subject, "value": value}))


def _print_table(read: list[tuple[Family, Scrape]], most: int | None) -> None:
    from collector.commands.display import new_table, show, styled

    table = new_table("Family and metric", "Of", "Value")
    table.columns[2].justify = "right"
    for family, scrape in read:
        table.add_row(styled(family.name, "bold"), *_summary(scrape))
        units = {metric.name: metric.unit for metric in family.metrics}
        for reading in scrape.answer.readings if scrape.answer else ():
            for cells in _rows(reading, units.get(reading.metric, "1"), most):
                table.add_row(*map(styled, cells))
    show(table)


def _summary(scrape: Scrape) -> tuple[Text, ...]:
    from collector.commands.display import styled
    from collector.commands.printable import printable

    took = f"{_seconds(scrape):.3f} s"
    if scrape.answer is None:
        why = printable(scrape.error or "no reason told")
        return (styled(f"UNKNOWN, {scrape.outcome}: {why}", "bold red"),)
    found = sum(
        value is not None for reading in scrape.answer.readings for value in reading.values.values()
    )
    return (
        styled(f"ok, {found:,} not zero of {scrape.answer.beans:,} beans", "green"),
        styled(took, "dim"),
    )


def _seconds(scrape: Scrape) -> float:
    return round((scrape.answered_us - scrape.asked_us) / 1e6, 6)


def _rows(reading: Reading, unit: str, most: int | None) -> list[tuple[str, str, str]]:
    from collector.commands.display import setting, subject

    def worst(item: tuple[Series, float]) -> tuple[float, str]:
        return -item[1], str(item[0])

    shown = sorted(
        ((series, value) for series, value in reading.values.items() if value is not None),
        key=worst,
    )
    name = f"  {reading.metric}"
    rows = [
        (name, subject(series), setting(reading.metric, value, unit))
        for series, value in shown[:most]
    ]
    if most is not None and len(shown) > most:
        rows.append((name, f"and {len(shown) - most:,} more: --all shows them", ""))
    return rows
