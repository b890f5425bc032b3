"""``jmxlake-agent config`` and ``unit``: files that ship with the package, printed to be edited."""

from pathlib import Path

import click


@click.command(short_help="Print the reference configuration, with every key.")
def config() -> None:
    """Print the reference configuration, every key with its default, for you to edit."""
    click.echo(_shipped("agent.yaml"), nl=False)


@click.command(short_help="Print the unit for systemd.")
@click.option("--template", is_flag=True, help="For several agents of a host: one unit for all.")
def unit(*, template: bool) -> None:
    """Print the unit for systemd.

    For several agents of a host, write jmxlake-agent unit --template into
    /etc/systemd/system/jmxlake-agent@.service: then jmxlake-agent@NAME reads /etc/jmxlake/NAME.yaml
    and keeps its spool in /var/lib/jmxlake/NAME.db. Each needs a health.port of its own.
    """
    text = _shipped("systemd/jmxlake-agent.service")
    if template:
        spool = "Environment=JMXLAKE_AGENT__SPOOL__PATH=/var/lib/jmxlake/%i.db\n"
        text = text.replace("/etc/jmxlake/agent.", "/etc/jmxlake/%i.")
        text = text.replace("enable --now jmxlake-agent", "enable --now jmxlake-agent@NAME")
        text = text.replace("reload jmxlake-agent`", "reload jmxlake-agent@NAME`")
        text = text.replace("EnvironmentFile=", f"{spool}EnvironmentFile=")
    click.echo(text, nl=False)


def _shipped(name: str) -> str:
    """A file of deploy/: of the checkout, where the package is run from one, else as installed."""
    import sysconfig

    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    return ((checkout if checkout.is_dir() else installed) / name).read_text("utf-8")
