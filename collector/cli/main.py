"""``jmxlake-agent``: the commands beside a broker.

Exit codes: 0 well, 1 something is wrong and one line says what, 2 the command was called wrongly,
78 the configuration is wrong.
"""

from pathlib import Path

import click

from collector.cli.beans import beans
from collector.cli.check import check
from collector.cli.command import OneLine
from collector.cli.import_prometheus import past
from collector.cli.once import once
from collector.cli.run import run
from collector.cli.support_bundle import support
from collector.cli.top.command import top


@click.group(cls=OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Read a Kafka broker's JMX beans and keep them, exactly once, in Delta tables."""


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


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash: jmxlake-agent completion bash > /etc/bash_completion.d/jmxlake-agent
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    script = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    group = context.find_root().command
    click.echo(script(group, {}, "jmxlake-agent", "_JMXLAKE_AGENT_COMPLETE").source())


def _shipped(name: str) -> str:
    """A file of deploy/: of the checkout, where the package is run from one, else as installed."""
    import sysconfig

    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    return ((checkout if checkout.is_dir() else installed) / name).read_text("utf-8")


for _command in (run, once, top, check, beans, past, support, config, unit, completion):
    main.add_command(_command)


if __name__ == "__main__":
    main()
