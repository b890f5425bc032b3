"""The command ``jmxlake``: roll up, verify, state, report, explain, maintain.

Spark is imported only when a command needs it, so that help is there at once.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final, NoReturn

import click

from lakehouse.commands.completion import completion
from lakehouse.commands.doctor import doctor
from lakehouse.commands.explain import explain
from lakehouse.commands.export import export
from lakehouse.commands.maintain import maintain, unit
from lakehouse.commands.objectives import objectives as objectives_group
from lakehouse.commands.register import register
from lakehouse.commands.report import report
from lakehouse.commands.rollup import rollup, verify
from lakehouse.commands.sample import sample
from lakehouse.commands.send import send
from lakehouse.commands.sla import sla
from lakehouse.commands.summary import summary
from lakehouse.commands.weekly import weekly
from lakehouse.errors import LakehouseError, extra, is_of_spark

_BY_DELTA_RS: Final = ("doctor", "export", "maintain")
"""Commands that need delta-rs alone, and not what rolls a lake up."""


class _OneLine(click.Group):
    """Errors are one line and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LakehouseError as error:
            _fail(str(error))
        except ModuleNotFoundError as error:
            name = f"{error.name}".partition(".")[0]
            wanted = "lakehouse" if name in {"pyspark", "pandas"} else "local"
            if ctx.invoked_subcommand in _BY_DELTA_RS:
                wanted = "maintain"
            _fail(f"{name} is missing: install {extra(wanted)}")
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except Exception as error:
            if not is_of_spark(error):
                raise
            _fail(f"Spark failed: {_first_line(error)}{_hint(error)}")


@click.group(cls=_OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Kafka's JMX metrics in a lake: roll them up, state attainment, write the report."""
    os.environ.setdefault("RUST_LOG", "off")  # what Rust has to say is in the errors, too


for _command in (
    weekly, rollup, verify, register, sla, report, summary, send, explain, objectives_group, export,
    doctor, maintain, unit, sample, completion,
):  # fmt: skip
    main.add_command(_command)


def _first_line(error: BaseException) -> str:
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    # py4j says first that something happened, and then what.
    told = [line for line in lines if not line.startswith("An error occurred while calling")]
    return next(iter(told or lines), repr(error))


def _hint(error: BaseException) -> str:
    if "S3AFileSystem not found" not in str(error):
        return ""
    return "; for a bucket a local Spark needs the jars of S3A: docs/engines.md, S3"


def _fail(message: str) -> NoReturn:
    click.echo(f"jmxlake: {' '.join(message.split())}", err=True)
    sys.exit(1)
