"""``jmxlake``: the command group of the lakehouse; ``jmxlake-job`` for platforms.

Exit codes: 0 success, 1 an error with its reason in one line, 2 wrong usage, 3 another rollup holds
the lease.
"""

import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import click

from lakehouse import errors
from lakehouse.cli.options import log
from lakehouse.errors import extra
from lakehouse.tables import error_text
from lakehouse.tables.command_group import LazyGroup

_COMMANDS: Final = {
    "Report": {
        "weekly": ("weekly", "Roll up, publish SLO results, report and send a week."),
        "report": ("report", "Report a week as text, HTML, PDF, JSON or CSV."),
        "summary": ("report", "Summarize several clusters on one page."),
        "send": ("weekly", "Send a saved report by mail or to a chat."),
        "explain": ("report", "Show a week of one topic, client, group or broker."),
    },
    "Objectives": {
        "slo": ("slo", "Check and list objectives, and publish SLO results."),
    },
    "Pipeline": {
        "rollup": ("rollup", "Update gold tables from bronze."),
        "upgrade": ("rollup", "Convert gold tables that an older version wrote."),
        "verify": ("rollup", "Recompute some hours and compare them with gold."),
        "maintain": ("maintain", "Compact, checkpoint and clean up bronze tables."),
        "doctor": ("doctor", "Check a lake and its agents, and suggest fixes."),
        "forget": ("maintain", "Replace a user name or client ID in every table."),
    },
    "Query": {
        "views": ("views", "Create SQL views of gold with readable names and units."),
        "export": ("export", "Export a gold table as Parquet, CSV or OpenMetrics."),
        "register": ("views", "Register bronze tables in a catalog."),
    },
    "Setup": {
        "watched-groups": ("setup", "Choose the groups that agents count, by topic."),
        "schema": ("setup", "Print the JSON Schema of a YAML file."),
        "sample": ("setup", "Write a sample lake of an invented Kafka cluster."),
        "completion": ("setup", "Print a shell completion script."),
        "systemd-unit": ("setup", "Print a systemd unit for maintain, rollup or weekly."),
    },
}
"""The module and the first sentence of each command, by section of ``--help``."""
_RENAMED: Final = {"objectives": "slo", "sla": "slo publish", "unit": "systemd-unit"}
NEEDS_MAINTAIN: Final = ("doctor", "export", "maintain", "views", "watched-groups")
"""Commands that need only the extra ``maintain``."""
_CLICK_ERRORS: Final = (click.ClickException, click.exceptions.Exit, click.Abort)


class _Commands(LazyGroup):
    """Prints an error as one line and exits with 1, or 3 if another rollup holds the lease."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        try:
            return super().get_command(ctx, cmd_name)
        except ModuleNotFoundError as error:
            _fail_for_missing(error, cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except errors.LakehouseError as error:
            # ``forget`` has changed bronze before it waits for the lease, so it failed.
            is_held = isinstance(error, errors.LeaseHeldError)
            _fail(str(error), 3 if is_held and ctx.invoked_subcommand != "forget" else 1)
        except ModuleNotFoundError as error:
            _fail_for_missing(error, f"{ctx.invoked_subcommand}")
        except (*_CLICK_ERRORS, BrokenPipeError):
            raise
        except BaseException as error:
            if not error_text.is_fault(error):
                raise
            if not errors.is_of_spark(error):
                _fail(error_text.fault(error))
            _fail(errors.spark_failed(error))


@click.group(
    cls=_Commands, package="lakehouse.cli", sections=_COMMANDS, renamed=_RENAMED,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Roll up Kafka's JMX metrics in a lake, and report service levels."""
    error_text.silence_rust()


def job(arguments: Sequence[str] | None = None) -> None:
    """Run a command and return: ``jmxlake-job``, for platforms that run it in their process.

    Databricks treats every ``SystemExit`` as a failure, even with code 0, so the only sign of a
    failure is an exception. Its parameters do not support conditions, so options without a value
    are ignored, such as ``--owners=`` with an empty variable.

    Args:
        arguments: The command and its options. Default: the arguments of the process.

    Raises:
        JobFailedError: The exit code is not 0. Standard error contains the reason.
    """
    words = given(sys.argv[1:] if arguments is None else arguments)
    try:
        main.main(args=words, prog_name="jmxlake")
    except SystemExit as end:
        if end.code not in (0, None):
            command = words[0] if words else "without a command"
            raise errors.JobFailedError(
                f"jmxlake {command} failed with exit code {end.code}. See the reason above"
            ) from None


def given(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without options that have no value."""
    return [text for text in arguments if not (text.startswith("--") and text.endswith("="))]


def _fail_for_missing(error: ModuleNotFoundError, command: str) -> NoReturn:
    name = f"{error.name}".partition(".")[0]
    needed = "maintain" if command in NEEDS_MAINTAIN else "local"
    needed = "spark" if name in {"pyspark", "pandas"} else needed
    _fail(f"{name} is missing: install {extra(needed)}")


def _fail(message: str, code: int = 1) -> NoReturn:
    log(error_text.printable(" ".join(message.split())))
    sys.exit(code)
