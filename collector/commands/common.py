"""What the commands have in common: their options, and that what is wrong is one line."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import click

from collector.commands.printable import printable
from collector.errors import JmxlakeError, SettingError, extra, unexpected

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.sections import Config

_GOODBYE_SECONDS: Final = 1.0
# Who called us knows what to say of these: of a missing extra, a closed pipe, wrong usage.
_OF_OTHERS: Final = (
    ModuleNotFoundError, BrokenPipeError, click.ClickException, click.exceptions.Exit, click.Abort,
)  # fmt: skip

CONFIG = click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path),
    default=Path("/etc/jmxlake/agent.yaml"),
    show_default=True,
    help="The agent's configuration.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


class Step(NamedTuple):
    """Something the agent needs, and how it was found."""

    name: str
    found: str
    ok: bool


class OneLine(click.Group):
    """A group whose commands end with one line where an extra is not installed."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            fail(JmxlakeError(f"{error.name} is missing: install {extra('agent')}"))


def guarded(
    path: Path, work: Callable[[Config], None], say: Callable[[Exception], None] | None = None
) -> None:
    """Run a command; whatever is wrong is one line and exit code 1.

    Args:
        path: The configuration file.
        work: What to do with its content.
        say: How to say the line; by default as text on standard error.
    """
    from collector.config import load, located

    code = 0
    try:
        work(load(path))
    except JmxlakeError as error:
        named = located(error, str(path)) if isinstance(error, SettingError) else error
        (say or _say)(named)
        code = 1
    except _OF_OTHERS:
        raise
    except Exception as error:  # noqa: BLE001 - our own fault is one line, too, and ends a JVM
        said = f"{unexpected(error)}: this is a fault of jmxlake, please report it"
        (say or _say)(JmxlakeError(said))
        code = 1
    _leave(code)


def fail(error: Exception) -> NoReturn:
    """End with one line and exit code 1."""
    _say(error)
    sys.exit(1)


def _say(error: Exception) -> None:
    click.echo(f"jmxlake-agent: {printable(str(error))}", err=True)


def _leave(code: int) -> NoReturn:
    """End, and at once where there is a JVM.

    A thread that is still inside Java, since a source hangs or a person was quicker, would meet a
    Python that is being taken down, and crash.
    """
    if "jpype" not in sys.modules:
        sys.exit(code)
    for thread in threading.enumerate():
        if thread.name.startswith(
            "close"
        ):  # it tells a broker that we go, who would keep a thread for us
            thread.join(_GOODBYE_SECONDS)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
