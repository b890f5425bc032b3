"""The command ``jmxlake``.

A command imports Spark only when it needs it, so that help is printed at once.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final, NoReturn

import click

from lakehouse.cli.doctor import doctor
from lakehouse.cli.explain import explain
from lakehouse.cli.export import export
from lakehouse.cli.maintain import maintain, unit
from lakehouse.cli.objectives import objectives as objectives_group
from lakehouse.cli.options import log
from lakehouse.cli.report import report, summary
from lakehouse.cli.rollup import register, rollup, verify
from lakehouse.cli.sample import sample
from lakehouse.cli.send import send
from lakehouse.cli.sla import sla
from lakehouse.cli.weekly import weekly
from lakehouse.errors import LakehouseError, extra, is_of_spark

_DELTA_RS_ONLY: Final = ("doctor", "export", "maintain")
"""Commands that need the extra ``maintain`` only."""


class _OneLineErrors(click.Group):
    """Prints an error as one line and exits with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LakehouseError as error:
            _fail(str(error))
        except ModuleNotFoundError as error:
            name = f"{error.name}".partition(".")[0]
            needed = "lakehouse" if name in {"pyspark", "pandas"} else "local"
            if ctx.invoked_subcommand in _DELTA_RS_ONLY:
                needed = "maintain"
            _fail(f"{name} is missing: install {extra(needed)}")
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except Exception as error:
            if not is_of_spark(error):
                raise
            _fail(f"Spark failed: {_first_line(error)}{_hint(error)}")


@click.group(cls=_OneLineErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Kafka's JMX metrics in a lake: roll them up, publish attainment, write the report."""
    os.environ.setdefault("RUST_LOG", "off")  # the errors have all that Rust would log


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash: jmxlake completion bash > /etc/bash_completion.d/jmxlake
    """
    from click.shell_completion import shell_complete

    program = context.find_root().command
    shell_complete(program, {}, "jmxlake", "_JMXLAKE_COMPLETE", f"{shell}_source")


for _command in (
    weekly, rollup, verify, register, sla, report, summary, send, explain, objectives_group, export,
    doctor, maintain, unit, sample, completion,
):  # fmt: skip
    main.add_command(_command)


def _first_line(error: BaseException) -> str:
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    # The first line of py4j only says that a call failed.
    causes = [line for line in lines if not line.startswith("An error occurred while calling")]
    return next(iter(causes or lines), repr(error))


def _hint(error: BaseException) -> str:
    if "S3AFileSystem not found" not in str(error):
        return ""
    return "; for a bucket a local Spark needs the jars of S3A: docs/engines.md, S3"


def _fail(message: str) -> NoReturn:
    log(" ".join(message.split()))
    sys.exit(1)
