"""Options and error handling that all commands of ``jmxlake-agent`` share."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import click

from collector.errors import ConfigError, JmxlakeError, SettingError, extra
from lakehouse.tables import error_text
from lakehouse.tables.command_group import LazyGroup

if TYPE_CHECKING:
    from collector.config.schema import Config

_CLOSE_SECONDS: Final = 1.0
# Click or the group reports these: a missing extra, a closed pipe, wrong usage.
_REPORTED_ELSEWHERE: Final = (
    ModuleNotFoundError, BrokenPipeError, click.ClickException, click.exceptions.Exit, click.Abort,
)  # fmt: skip

CONFIG_VARIABLE: Final = "JMXLAKE_CONFIG"
CONFIG = click.option(
    "--config", "-c", "path", type=click.Path(path_type=Path), envvar=CONFIG_VARIABLE,
    default=Path("/etc/jmxlake/agent.yaml"), show_default=True, show_envvar=True,
    help="Agent configuration file.",
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")


class Step(NamedTuple):
    """The result of one check of ``jmxlake-agent check``."""

    name: str
    found: str
    ok: bool


class OneLineErrorGroup(LazyGroup):
    """A group whose commands print every error as one line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        error_text.silence_rust()
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            fail(JmxlakeError(f"{error.name} is missing: install {extra('agent')}"))
        except _REPORTED_ELSEWHERE:
            raise
        except BaseException as error:
            if not error_text.is_fault(error):
                raise
            fail(
                error if isinstance(error, JmxlakeError) else JmxlakeError(error_text.fault(error))
            )


def guarded(
    where: Path | str,
    work: Callable[[Config], None],
    report: Callable[[Exception], None] | None = None,
    made: Callable[[], Config] | None = None,
) -> None:
    """Run a command and end the process; report an error as one line.

    The exit code is 1 for an error, and 78 for a wrong configuration.

    Args:
        where: The configuration file. With ``made``: a name for it in error messages.
        work: The command; its argument is the configuration.
        report: Reports an error. None: as text on standard error.
        made: Creates the configuration. None: it is loaded from ``where``.
    """
    from collector.config.loader import load, located

    failed: JmxlakeError | None = None
    try:
        work(made() if made else load(Path(where)))
    except JmxlakeError as error:
        failed = located(error, str(where)) if isinstance(error, SettingError) else error
    except _REPORTED_ELSEWHERE:
        raise
    except BaseException as error:
        if not error_text.is_fault(error):
            raise
        failed = JmxlakeError(error_text.fault(error))
    if failed is not None:
        (report or _print_error)(failed)
    _leave(_code(failed) if failed else 0)


def warn(step: Step) -> None:
    """Print a failed check on standard error."""
    click.echo(error_text.printable(f"{step.name}: {step.found}"), err=True)


def progress(text: str) -> None:
    """Print progress on standard error if a person reads it."""
    if sys.stderr.isatty():
        click.echo(text, err=True)


def fail(error: Exception) -> NoReturn:
    """Print an error as one line, and exit with 1, or 78 for a wrong configuration."""
    _print_error(error)
    sys.exit(_code(error))


def _code(error: Exception) -> int:
    # systemd restarts the agent after every code except 78, which a person must fix.
    return os.EX_CONFIG if isinstance(error, ConfigError) else 1


def _print_error(error: Exception) -> None:
    click.echo(f"jmxlake-agent: {error_text.printable(str(error))}", err=True)


def _leave(code: int) -> NoReturn:
    """Exit without waiting for sources that have not responded.

    A thread inside Java would crash when Python shuts down.
    """
    for thread in threading.enumerate():
        # A broker keeps a thread for each connection that is not closed.
        if thread.name.startswith("close"):
            thread.join(_CLOSE_SECONDS)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
