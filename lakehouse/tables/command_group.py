"""Command group of both programs: sections in ``--help``, and errors for renamed commands."""

from collections.abc import Mapping, Sequence
from typing import Any

import click


class SectionedGroup(click.Group):
    """A group that lists its commands by section.

    Args:
        sections: Command names by section title, in the order of ``--help``.
        renamed: New names of renamed commands.
    """

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Sequence[str]],
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
