"""The command ``jmxlake``.

A command's module is imported when the command is called, so that help is printed at once.
"""

import sys
from importlib import import_module
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem, shell_complete

from lakehouse.cli.options import log
from lakehouse.errors import LakehouseError, LeaseHeldError, extra, is_of_spark, spark_failed
from lakehouse.tables import error_text

_COMMANDS: Final = {
    "completion": ("main", "Print the completion script of a shell."),
    "doctor": ("doctor", "Check a lake: what is wrong, and what to do."),
    "explain": ("explain", "Explain a week of one topic, client, group or broker."),
    "export": ("export", "Write a table of gold as Parquet, CSV or OpenMetrics."),
    "forget": ("forget", "Replace a user's or client id's name in bronze and gold."),
    "maintain": ("maintain", "Compact, checkpoint and clean up bronze."),
    "objectives": ("objectives", "Objectives in OpenSLO v1: check files, list their objectives."),
    "register": ("rollup", "Register the bronze tables in a catalog."),
    "report": ("reports.report", "Report a week: table, page, PDF, JSON or CSV."),
    "rollup": ("rollup", "Bring gold up to date with bronze."),
    "sample": ("sample", "Write a lake of an invented cluster, to try jmxlake without Kafka."),
    "send": ("reports.send", "Send a report by mail or to a chat."),
    "sla": ("reports.sla", "Publish in gold/sla whether objectives were met."),
    "summary": ("reports.summary", "Report several clusters on one page."),
    "unit": ("maintain", "Print a systemd unit: maintenance, rollup or weekly report."),
    "upgrade": ("upgrade", "Convert gold that an older version wrote."),
    "verify": ("rollup", "Recompute some hours and compare gold to the bit."),
    "views": ("views", "Print SQL that creates readable views of gold, or run it."),
    "weekly": ("reports.weekly", "Roll up, publish, report and send a week."),
}
"""The module of each command, and what it does."""
_DELTA_RS_ONLY: Final = ("doctor", "export", "maintain", "views")
"""Commands that need the extra ``maintain`` only."""
_OF_CLICK: Final = (click.ClickException, click.exceptions.Exit, click.Abort)


class _Commands(click.Group):
    """Imports a command when it is called; prints an error as one line and exits with 1, or 3."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        try:
            command: click.Command = getattr(import_module(f"lakehouse.cli.{module}"), cmd_name)
        except ModuleNotFoundError as error:
            _fail_for_missing(error, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [
            CompletionItem(name, help=text)
            for name, (_, text) in _COMMANDS.items()
            if name.startswith(incomplete)
        ]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LakehouseError as error:
            # forget has then done its part of bronze: it has failed.
            is_locked = isinstance(error, LeaseHeldError) and ctx.invoked_subcommand != "forget"
            _fail(str(error), 3 if is_locked else 1)
        except ModuleNotFoundError as error:
            _fail_for_missing(error, f"{ctx.invoked_subcommand}")
        except (*_OF_CLICK, BrokenPipeError):
            raise
        except BaseException as error:
            if not error_text.is_fault(error):
                raise
            if not is_of_spark(error):
                _fail(error_text.fault(error))
            _fail(spark_failed(error))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Kafka's JMX metrics in a lake: roll them up, publish attainment, write the report."""
    error_text.silence_rust()


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash: jmxlake completion bash > /etc/bash_completion.d/jmxlake
    """
    program = context.find_root().command
    shell_complete(program, {}, "jmxlake", "_JMXLAKE_COMPLETE", f"{shell}_source")


def _fail_for_missing(error: ModuleNotFoundError, command: str) -> NoReturn:
    name = f"{error.name}".partition(".")[0]
    needed = "lakehouse" if name in {"pyspark", "pandas"} else "local"
    needed = "maintain" if command in _DELTA_RS_ONLY else needed
    _fail(f"{name} is missing: install {extra(needed)}")


def _fail(message: str, code: int = 1) -> NoReturn:
    log(error_text.printable(" ".join(message.split())))
    sys.exit(code)
