"""The command ``jmxlake``: roll up, verify, state, report, maintain.

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
from lakehouse.commands.maintain import maintain, unit
from lakehouse.commands.register import register
from lakehouse.commands.rollup import rollup, verify
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


for _command in (rollup, verify, register, maintain, unit, completion):
    main.add_command(_command)


@main.command()
@LAKE
@GOLD
@OBJECTIVES
@_WEEK
@_FROM
@_TO
@click.option("--json", "as_json", is_flag=True, help="Tell every statement as JSON.")
def sla(
    lake: str, gold: str | None, objectives: Path | None, week: str | None, start: str | None,
    end: str | None, *, as_json: bool,
) -> None:  # fmt: skip
    """State attainment over a period (by default the last week) in gold/sla."""
    from lakehouse import sla as slas
    from lakehouse import slo
    from lakehouse.report.facts import window_of

    wanted = slo.load(objectives or slo.SHIPPED)
    chosen = _chosen(week, start, end)
    spark, place = opened(lake, gold)
    period = chosen(spark, place).aligned(window_of(spark, place))
    tell("statements")
    found = slas.read(spark, place, wanted, period, slas.now_us())
    fresh = slas.publish(spark, place, found, period)
    if as_json:
        told = [_statement(one) for one in found]
        click.echo(json.dumps({"statements": told, "new": len(fresh)}, indent=1))
    else:
        click.echo(f"{len(found)} statements, {len(fresh)} of them new or changed")


@main.command()
@LAKE
@GOLD
@OBJECTIVES
@_WEEK
@_FROM
@_TO
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
    chosen = _chosen(week, start, end)
    spark, place = opened(lake, gold)
    tell("facts")
    told = facts(spark, place, wanted, chosen(spark, place), cluster=cluster)
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


def _statement(one: Any) -> dict[str, Any]:
    subject = dict(
        zip(("topic", "user", "client_id", "group", "source"), one.subject.key, strict=True)
    )
    named = {"cluster": one.subject.cluster, "objective": one.objective.name}
    return {**named, **subject, **one.figures()}


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
