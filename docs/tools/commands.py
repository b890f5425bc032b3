"""Command-line reference: the help texts of all commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from collector.cli.main import main as agent
from docs.tools.layout import page
from lakehouse.cli.main import main as lakehouse

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS: Final = {"jmxlake-agent": agent, "jmxlake": lakehouse}

_WIDTH: Final = 96
_INTRODUCTION: Final = """\
There are two programs: `jmxlake-agent` runs on a broker's host, and `jmxlake` works on a lake.
`--help` prints the same texts. The exit code is 0 for success, 1 for an error (one line on standard
error names the place, the problem and the fix) and 2 for a wrong command line. The pages of some
commands list further codes: [rollup](../rollup.md), [doctor](../operations.md),
[weekly](../weekly.md)."""


def text() -> str:
    """Return the page."""
    parts = []
    for name, program in PROGRAMS.items():
        for full, help_text in helps(program, name):
            level = "##" if full == name else "###"
            parts.append(f"{level} {full}\n\n```text\n{help_text}\n```")
    return page("Command line", _INTRODUCTION, *parts)


def helps(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the full name and the help of a command and its subcommands."""
    settings = {"terminal_width": _WIDTH, "max_content_width": _WIDTH, **command.context_settings}
    context = click.Context(command, parent=parent, info_name=name, **settings)
    yield context.command_path, command.get_help(context).rstrip()
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            inner = command.get_command(context, below)
            if inner is not None and not inner.hidden:
                yield from helps(inner, below, context)
