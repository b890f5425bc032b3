"""The command ``jmxlake``: roll up, verify, state, report, maintain.

Spark is imported only when a command needs it, so that help is there at once.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from lakehouse.commands.common import GOLD, LAKE, OBJECTIVES, opened, tell
from lakehouse.commands.completion import completion
from lakehouse.commands.maintain import maintain, unit
from lakehouse.commands.period import FROM, TO, WEEK, chosen
from lakehouse.commands.report import report
from lakehouse.commands.rollup import rollup, verify
from lakehouse.commands.send import send
from lakehouse.commands.summary import summary
from lakehouse.errors import LakehouseError

if TYPE_CHECKING:
    from pathlib import Path


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


for _command in (rollup, verify, report, summary, send, maintain, unit, completion):
    main.add_command(_command)


@main.command()
@LAKE
@GOLD
@OBJECTIVES
@WEEK
@FROM
@TO
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
    asked = chosen(week, start, end)
    spark, place = opened(lake, gold)
    period = asked(spark, place).aligned(window_of(spark, place))
    tell("statements")
    found = slas.read(spark, place, wanted, period, slas.now_us())
    fresh = slas.publish(spark, place, found, period)
    if as_json:
        told = [_statement(one) for one in found]
        click.echo(json.dumps({"statements": told, "new": len(fresh)}, indent=1))
    else:
        click.echo(f"{len(found)} statements, {len(fresh)} of them new or changed")


def _statement(one: Any) -> dict[str, Any]:
    subject = dict(
        zip(("topic", "user", "client_id", "group", "source"), one.subject.key, strict=True)
    )
    named = {"cluster": one.subject.cluster, "objective": one.objective.name}
    return {**named, **subject, **one.figures()}


def _first_line(error: BaseException) -> str:
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    # py4j says first that something happened, and then what.
    told = [line for line in lines if not line.startswith("An error occurred while calling")]
    return next(iter(told or lines), repr(error))


def _fail(message: str) -> NoReturn:
    click.echo(f"jmxlake: {' '.join(message.split())}", err=True)
    sys.exit(1)
