"""What commands share: options, and how each ends, with one line and an exit code if it failed."""

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
from lakehouse.tables.error_text import printable

if TYPE_CHECKING:
    from collector.config.schema import Config

_CLOSE_SECONDS: Final = 1.0
# Who called us knows what to say of these: of a missing extra, a closed pipe, wrong usage.
_OF_OTHERS: Final = (
    ModuleNotFoundError, BrokenPipeError, click.ClickException, click.exceptions.Exit, click.Abort,
)  # fmt: skip

CONFIG = click.option(
    "--config", "path", type=click.Path(path_type=Path), default=Path("/etc/jmxlake/agent.yaml"),
    show_default=True, help="The agent's configuration.",
)  # fmt: skip
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


class Step(NamedTuple):
    """Something the agent needs, and how it was found."""

    name: str
    found: str
    ok: bool


class OneLine(click.Group):
    """A group whose commands end with one line for any error."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        error_text.silence_rust()
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            fail(JmxlakeError(f"{error.name} is missing: install {extra('agent')}"))
        except _OF_OTHERS:
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
    say: Callable[[Exception], None] | None = None,
    made: Callable[[], Config] | None = None,
) -> None:
    """Run a command; whatever is wrong is one line, and exit code 1, or 78 for the configuration.

    Args:
        where: The configuration file.
        work: What to do with its content.
        say: How to say the line; by default as text on standard error.
        made: Makes the configuration where it is in no file; ``where`` stands for its name then.
    """
    from collector.config.loader import load, located

    failed: JmxlakeError | None = None
    try:
        work(made() if made else load(Path(where)))
    except JmxlakeError as error:
        failed = located(error, str(where)) if isinstance(error, SettingError) else error
    except _OF_OTHERS:
        raise
    except BaseException as error:
        if not error_text.is_fault(error):
            raise
        failed = JmxlakeError(error_text.fault(error))
    if failed is not None:
        (say or _say)(failed)
    _leave(_code(failed) if failed else 0)


def warn(step: Step) -> None:
    """Say on standard error what is not as it should be."""
    click.echo(printable(f"{step.name}: {step.found}"), err=True)


def fail(error: Exception) -> NoReturn:
    """End with one line, and exit code 1, or 78 for the configuration."""
    _say(error)
    sys.exit(_code(error))


def _code(error: Exception) -> int:
    # systemd starts the agent again after all but this: it waits for a person.
    return os.EX_CONFIG if isinstance(error, ConfigError) else 1


def _say(error: Exception) -> None:
    click.echo(f"jmxlake-agent: {printable(str(error))}", err=True)


def _leave(code: int) -> NoReturn:
    """End at once, without waiting for a source that hangs or has not answered yet.

    A thread that is still inside Java would meet a Python that is being taken down, and crash.
    """
    for thread in threading.enumerate():
        # A broker keeps a thread for a connection that is not closed.
        if thread.name.startswith("close"):
            thread.join(_CLOSE_SECONDS)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
