"""Command group of both programs: sections in ``--help``, and errors for renamed commands."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click
from click.shell_completion import CompletionItem


class SectionedGroup(click.Group):
    """A group that lists its commands by section.

    Args:
        sections: Command names by section title, in the order of ``--help``.
        renamed: New names of renamed commands.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Iterable[str]],
        renamed: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self._sections, self._renamed = sections, renamed or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of all commands in the order of the sections."""
        return [name for names in self._sections.values() for name in names]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first argument; end with code 2 if it was renamed."""
        new_name = self._renamed.get(args[0])
        if new_name is not None and not ctx.resilient_parsing:
            program = ctx.command_path
            click.echo(f"`{program} {args[0]}` is now `{program} {new_name}`.", err=True)
            ctx.exit(2)
        return super().resolve_command(ctx, args)

    def summary(self, name: str) -> str:
        """Return the first sentence of a command's help."""
        return self.commands[name].get_short_help_str(limit=100)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections."""
        width = max(map(len, self.list_commands(ctx)))
        for title, names in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), self.summary(name)) for name in names])


class LazyGroup(SectionedGroup):
    """A group that imports a command when it is used, so that ``--help`` is fast.

    Args:
        package: Package of the commands' modules.
        sections: Module and first sentence of each command, by section of ``--help``.
    """

    def __init__(
        self,
        *args: Any,
        package: str,
        sections: Mapping[str, Mapping[str, tuple[str, str]]],
        **options: Any,
    ) -> None:
        super().__init__(*args, sections=sections, **options)
        self._package = package
        self._entries = {name: entry for one in sections.values() for name, entry in one.items()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command. None: the group does not have it."""
        if cmd_name not in self._entries:
            return None
        module, _ = self._entries[cmd_name]
        function = cmd_name.replace("-", "_") + "_" * iskeyword(cmd_name)
        command: click.Command = getattr(import_module(f"{self._package}.{module}"), function)
        return command

    def summary(self, name: str) -> str:
        """Return the first sentence of a command's help."""
        return self._entries[name][1]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that start with a text."""
        found = [
            CompletionItem(name, help=text)
            for name, (_, text) in self._entries.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]
