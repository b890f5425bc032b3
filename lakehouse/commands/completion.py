"""``jmxlake completion``: what a shell needs to complete our commands and options."""

from __future__ import annotations

import click


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash: jmxlake completion bash > /etc/bash_completion.d/jmxlake
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    script = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    click.echo(script(context.find_root().command, {}, "jmxlake", "_JMXLAKE_COMPLETE").source())
