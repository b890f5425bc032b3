"""``jmxlake``: the command group of the lakehouse.

Exit codes: 0 success, 1 an error with its reason in one line, 2 wrong usage, 3 another rollup holds
the lease.
"""

import sys
from importlib import import_module
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from lakehouse.cli.options import log
from lakehouse.errors import LakehouseError, LeaseHeldError, extra, is_of_spark, spark_failed
from lakehouse.tables import error_text
from lakehouse.tables.command_group import SectionedGroup

_COMMANDS: Final = {
    "Report": {
        "weekly": ("reports.weekly", "Roll up, publish SLO results, report and send a week."),
        "report": ("reports.report", "Report a week as text, HTML, PDF, JSON or CSV."),
        "summary": ("reports.summary", "Summarize several clusters on one page."),
        "send": ("reports.send", "Send a saved report by mail or to a chat."),
        "explain": ("reports.explain", "Show a week of one topic, client, group or broker."),
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
        "forget": ("forget", "Replace a user name or client ID in every table."),
    },
    "Query": {
        "views": ("views", "Create SQL views of gold with readable names and units."),
        "export": ("export", "Export a gold table as Parquet, CSV or OpenMetrics."),
        "register": ("views", "Register bronze tables in a catalog."),
    },
    "Setup": {
        "watched-groups": ("watched_groups", "Choose the groups that agents count, by topic."),
        "sample": ("sample", "Write a sample lake of an invented Kafka cluster."),
        "completion": ("setup", "Print a shell completion script."),
        "systemd-unit": ("setup", "Print a systemd unit for maintain, rollup or weekly."),
    },
}
"""The module and the first sentence of each command, by section of ``--help``."""
_BY_NAME: Final = {name: entry for section in _COMMANDS.values() for name, entry in section.items()}
_RENAMED: Final = {"objectives": "slo", "sla": "slo publish", "unit": "systemd-unit"}
_NEEDS_MAINTAIN: Final = ("doctor", "export", "maintain", "views", "watched-groups")
"""Commands that need only the extra ``maintain``."""
_CLICK_ERRORS: Final = (click.ClickException, click.exceptions.Exit, click.Abort)


class _Commands(SectionedGroup):
    """A group that imports commands lazily, so that ``--help`` is fast.

    It prints an error as one line and exits with 1, or 3 if another rollup holds the lease.
    """

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _BY_NAME:
            return None
        module, _ = _BY_NAME[cmd_name]
        function = cmd_name.replace("-", "_")
        try:
            command: click.Command = getattr(import_module(f"lakehouse.cli.{module}"), function)
        except ModuleNotFoundError as error:
            _fail_for_missing(error, cmd_name)
        return command

    def summary(self, name: str) -> str:
        _, text = _BY_NAME[name]
        return text

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        return [
            CompletionItem(name, help=text)
            for name, (_, text) in _BY_NAME.items()
            if name.startswith(incomplete)
        ]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except LakehouseError as error:
            # ``forget`` has changed bronze before it waits for the lease, so it failed.
            is_locked = isinstance(error, LeaseHeldError) and ctx.invoked_subcommand != "forget"
            _fail(str(error), 3 if is_locked else 1)
        except ModuleNotFoundError as error:
            _fail_for_missing(error, f"{ctx.invoked_subcommand}")
        except (*_CLICK_ERRORS, BrokenPipeError):
            raise
        except BaseException as error:
            if not error_text.is_fault(error):
                raise
            if not is_of_spark(error):
                _fail(error_text.fault(error))
            _fail(spark_failed(error))


@click.group(
    cls=_Commands, sections=_COMMANDS, renamed=_RENAMED,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Roll up Kafka's JMX metrics in a lake, and report service levels."""
    error_text.silence_rust()


def _fail_for_missing(error: ModuleNotFoundError, command: str) -> NoReturn:
    name = f"{error.name}".partition(".")[0]
    needed = "spark" if name in {"pyspark", "pandas"} else "local"
    needed = "maintain" if command in _NEEDS_MAINTAIN else needed
    _fail(f"{name} is missing: install {extra(needed)}")


def _fail(message: str, code: int = 1) -> NoReturn:
    log(error_text.printable(" ".join(message.split())))
    sys.exit(code)
