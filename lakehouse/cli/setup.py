"""``jmxlake completion`` and ``jmxlake systemd-unit``."""

import sysconfig
from pathlib import Path
from typing import Final

import click
from click.shell_completion import shell_complete

_UNITS: Final = {
    "maintain": "jmxlake-maintain.service",
    "rollup": "jmxlake-rollup.service",
    "weekly": "jmxlake-weekly.service",
    "weekly-timer": "jmxlake-weekly.timer",
}


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell completion script.

    For bash: jmxlake completion bash > /etc/bash_completion.d/jmxlake
    """
    program = context.find_root().command
    shell_complete(program, {}, "jmxlake", "_JMXLAKE_COMPLETE", f"{shell}_source")


@click.command("systemd-unit")
@click.argument("name", type=click.Choice(list(_UNITS)), default="maintain", metavar="[NAME]")
def systemd_unit(name: str) -> None:
    """Print a systemd unit for maintain, rollup or weekly.

    NAME is maintain (default), rollup, weekly, or weekly-timer for the timer of weekly.
    """
    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    folder = checkout if checkout.is_dir() else installed
    click.echo((folder / "systemd" / _UNITS[name]).read_text("utf-8"), nl=False)
