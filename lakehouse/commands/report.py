"""``jmxlake report``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from lakehouse.commands.common import GOLD, LAKE, OBJECTIVES, opened, tell
from lakehouse.commands.period import FROM, TO, WEEK, chosen
from lakehouse.errors import LakehouseError


@click.command()
@LAKE
@GOLD
@OBJECTIVES
@WEEK
@FROM
@TO
@click.option("--cluster", help="Which cluster, if the lake has several.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the page here."
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="Write the facts here; - for standard output.",
)  # fmt: skip
def report(  # noqa: PLR0913, PLR0917 - a click command
    lake: str, gold: str | None, objectives: Path | None, week: str | None, start: str | None,
    end: str | None, cluster: str | None, html: Path | None, json_file: Path | None,
) -> None:  # fmt: skip
    """Tell how a period went (by default the last week); as a table, a page, and facts in JSON."""
    from lakehouse import slo
    from lakehouse.report.facts import facts
    from lakehouse.report.page import render
    from lakehouse.report.terminal import verdict_table

    wanted = slo.load(objectives or slo.SHIPPED)
    period = chosen(week, start, end)
    spark, place = opened(lake, gold)
    tell("facts")
    told = facts(spark, place, wanted, period(spark, place), cluster=cluster)
    if html is not None:
        _write(html, render(told))
    if json_file is not None:
        text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
        _write(json_file, text)
    if json_file is None or str(json_file) != "-":
        click.echo(verdict_table(told))


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LakehouseError(
            f"{path}: {error.strerror}; choose a file that can be written"
        ) from error
