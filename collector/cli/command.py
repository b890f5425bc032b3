"""Options, error handling and output that all commands of ``jmxlake-agent`` share.

Values have units, and texts have no control characters.
"""

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
    from rich.console import RenderableType
    from rich.table import Table

    from collector.config.schema import Config
    from collector.model import Series

_CLOSE_SECONDS: Final = 1.0
_SPANS: Final = ((86_400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_PIPE_WIDTH: Final = 400  # a pipe has no width, and its reader needs whole lines
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
        except BaseException as error:  # noqa: BLE001 - _one_line raises what is not a fault
            fail(_one_line(error))


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
    except SettingError as error:
        failed = located(error, str(where))
    except BaseException as error:  # noqa: BLE001 - _one_line raises what is not a fault
        failed = _one_line(error)
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


def _one_line(error: BaseException) -> JmxlakeError:
    """Return a fault as an error of one line. Raise an exit, a signal, and what click reports."""
    if isinstance(error, JmxlakeError):
        return error
    if isinstance(error, _REPORTED_ELSEWHERE) or not error_text.is_fault(error):
        raise error
    return JmxlakeError(error_text.fault(error))


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


def new_table(*columns: str, right: int) -> Table:
    """Return an empty table whose long cells wrap; the column ``right`` is right-aligned."""
    from rich.table import Table  # --help must not wait for rich

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold underline")
    for column in columns:
        table.add_column(column, overflow="fold")
    table.columns[right].justify = "right"
    return table


def show(what: RenderableType) -> None:
    """Print to a terminal, or as plain, whole lines to a pipe."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(width=width, highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        console.print(what)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def subject(series: Series) -> str:
    """Return the subject of a series: a partition, topic, client, group or the broker."""
    place = "-".join(str(part) for part in (series.topic, series.partition) if part is not None)
    named = (("group", series.group), ("user", series.user), ("client", series.client_id))
    words = [f"{word} {name}" for word, name in (*named, *series.labels) if name is not None]
    return error_text.printable(", ".join(filter(None, (place, *words))))


def amount(value: float | None, unit: str) -> str:
    """Return a value with its unit, in the shortest form."""
    if value is None:
        return "idle"
    if unit in ("By", "By/s"):
        return _bytes(value) + unit[2:]
    whole = value == round(value) or abs(value) >= 100
    number = f"{value:,.0f}" if whole else f"{value:.3g}"
    if unit == "1":
        return number
    if unit.startswith("{"):
        name, _, per = unit[1:].partition("}")
        plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
        return f"{number} {name if value == 1 else plural}{per}"
    return f"{number} {unit}"


def span(seconds: float) -> str:
    """Return a duration in its two largest units: 35s, 2m 05s, 1h 02m, 3d 04h."""
    whole = max(0, round(seconds))
    for size, unit, part, smaller in _SPANS:
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // part:02d}{smaller}"
    return f"{whole}s"


def _bytes(value: float) -> str:
    step = 0
    while abs(value) >= 1024 and step < len(_SIZES) - 1:
        value, step = value / 1024, step + 1
    return f"{value:.0f} {_SIZES[step]}" if step == 0 else f"{value:.1f} {_SIZES[step]}"
