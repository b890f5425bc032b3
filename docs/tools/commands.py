"""The reference of the command line: what the commands say of themselves."""

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
Two programs: `jmxlake-agent` runs beside a broker, `jmxlake` on a lake. Each says the same with
`--help`. They end with 0 where all is well, 1 where something is wrong (one line on standard error
says what, where and what to do) and 2 where the command was typed wrongly; some have further codes,
which their pages tell: [rollup](../rollup.md), [doctor](../doctor.md), [send](../send.md)."""


def text() -> str:
    """The page."""
    parts = []
    for name, program in PROGRAMS.items():
        for full, help_text in helps(program, name):
            level = "##" if full == name else "###"
            parts.append(f"{level} {full}\n\n```text\n{help_text}\n```")
    return page("Command line", _INTRODUCTION, *parts)


def helps(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """The full names of a command and all below it, with the help of each."""
    settings = {"terminal_width": _WIDTH, "max_content_width": _WIDTH, **command.context_settings}
    context = click.Context(command, parent=parent, info_name=name, **settings)
    yield context.command_path, command.get_help(context).rstrip()
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            one = command.get_command(context, below)
            if one is not None and not one.hidden:
                yield from helps(one, below, context)
