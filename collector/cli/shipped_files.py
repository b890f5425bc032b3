"""``jmxlake-agent config`` and ``systemd-unit``: files of the package, printed for editing."""

from pathlib import Path

import click


@click.command
def config() -> None:
    """Print the reference configuration with all keys.

    Each key has its default value.
    """
    click.echo(_shipped("agent.yaml"), nl=False)


@click.command("systemd-unit")
@click.option("--template", is_flag=True, help="Print a template unit for several agents per host.")
def systemd_unit(*, template: bool) -> None:
    """Print the systemd unit.

    For several agents per host, write the output of jmxlake-agent systemd-unit --template to
    /etc/systemd/system/jmxlake-agent@.service. The unit jmxlake-agent@NAME then reads
    /etc/jmxlake/NAME.yaml and stores its spool in /var/lib/jmxlake/NAME.db. Each agent needs its
    own health.port.
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
    """Return a file of deploy/ from the checkout, or from the installed package."""
    import sysconfig

    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    return ((checkout if checkout.is_dir() else installed) / name).read_text("utf-8")
