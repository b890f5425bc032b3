"""The command ``jmxlake``: roll up, verify, state, report, explain, maintain.

Spark is imported only when a command needs it, so that help is there at once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from lakehouse.commands.common import GOLD, LAKE, OBJECTIVES, opened, tell
from lakehouse.commands.completion import completion
from lakehouse.commands.doctor import doctor
from lakehouse.commands.export import export
from lakehouse.commands.explain import explain
from lakehouse.commands.maintain import maintain, unit
from lakehouse.commands.objectives import objectives as objectives_group
from lakehouse.commands.register import register
from lakehouse.commands.rollup import rollup, verify
from lakehouse.commands.sla import MAINTENANCE, sla
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from lakehouse.lake import Lake
    from lakehouse.periods import Period

_WEEK: Final = click.option("--week", metavar="YYYY-Www", help="An ISO week, such as 2026-W47.")
_FROM: Final = click.option("--from", "start", metavar="INSTANT", help="Start, ISO 8601, UTC.")
_TO: Final = click.option("--to", "end", metavar="INSTANT", help="End, ISO 8601, UTC.")


class _OneLine(click.Group):
    """Errors are one line and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LakehouseError as error:
            _fail(str(error))
        except ModuleNotFoundError as error:
            _fail(f"{error.name} is missing: install jmxlake[lakehouse]")
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except Exception as error:
            if type(error).__module__.split(".")[0] not in ("pyspark", "py4j"):
                raise
            _fail(f"Spark failed: {_first_line(error)}")


@click.group(cls=_OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Kafka's JMX metrics in a lake: roll them up, state attainment, write the report."""


for _command in (
    rollup, verify, register, sla, explain, objectives_group, export, doctor, maintain, unit,
    completion,
):  # fmt: skip
    main.add_command(_command)


@main.command()
@LAKE
@GOLD
@OBJECTIVES
@_WEEK
@_FROM
@_TO
@MAINTENANCE
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
    end: str | None, maintenance: Path | None, cluster: str | None, html: Path | None,
    json_file: Path | None,
) -> None:  # fmt: skip
    """Tell how a period went (by default the last week); as a table, a page, and facts in JSON."""
    from lakehouse import maintenance as planned
    from lakehouse import slo
    from lakehouse.report.facts import facts
    from lakehouse.report.page import render
    from lakehouse.report.terminal import verdict_table

    wanted = slo.load(objectives or slo.SHIPPED)
    windows = planned.load(maintenance) if maintenance else ()
    chosen = _chosen(week, start, end)
    spark, place = opened(lake, gold)
    tell("facts")
    period = chosen(spark, place)
    told = facts(spark, place, wanted, period, cluster=cluster, maintenance=windows)
    if html is not None:
        _write(html, render(told))
    if json_file is not None:
        text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
        _write(json_file, text)
    if json_file is None or str(json_file) != "-":
        click.echo(verdict_table(told))


def _chosen(
    week: str | None, start: str | None, end: str | None
) -> Callable[[SparkSession, Lake], Period]:
    """The period that was asked for; a wrong one fails before Spark starts."""
    from lakehouse import periods

    if week is not None and (start or end):
        raise click.UsageError("give --week, or --from and --to, not both")
    if (start is None) != (end is None):
        raise click.UsageError("--from and --to go together")
    if week is not None:
        asked = periods.week(week)
    elif start is not None and end is not None:
        asked = periods.span(start, end)
    else:
        from lakehouse.report.facts import last_week

        return last_week
    return lambda _spark, _lake: asked


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


def _first_line(error: BaseException) -> str:
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    # py4j says first that something happened, and then what.
    told = [line for line in lines if not line.startswith("An error occurred while calling")]
    return next(iter(told or lines), repr(error))


def _fail(message: str) -> NoReturn:
    click.echo(f"jmxlake: {' '.join(message.split())}", err=True)
    sys.exit(1)
