"""``jmxlake-agent config`` and ``jmxlake-agent unit``: the files to begin with."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Print the reference configuration, with every key.")
def config() -> None:
    """Print the reference configuration, every key with its default, for you to edit."""
    click.echo(_shipped("agent.yaml"), nl=False)


@click.command(short_help="Print the unit for systemd.")
def unit() -> None:
    """Print the unit for systemd."""
    click.echo(_shipped("systemd/jmxlake-agent.service"), nl=False)


def _shipped(name: str) -> str:
    """A file of deploy/: of the checkout, where the package is run from one, else as installed."""
    import sysconfig

    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    folder = checkout if checkout.is_dir() else installed
    return (folder / name).read_text("utf-8")
