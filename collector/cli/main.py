"""``jmxlake-agent``: the command group of the agent, and the commands that print files for editing.

Exit codes: 0 success, 1 an error with its reason in one line, 2 wrong usage, 78 wrong
configuration.
"""

from pathlib import Path
from typing import Final

import click

from collector.cli.check import check
from collector.cli.command import OneLineErrorGroup
from collector.cli.import_prometheus import import_
from collector.cli.metrics import metrics
from collector.cli.run import run
from collector.cli.scrape import scrape
from collector.cli.support_bundle import support_bundle
from collector.cli.top import top

_SECTIONS: Final = {
    "Run": ("run", "top"),
    "Set up": ("config", "check", "scrape", "systemd-unit", "completion"),
    "Inspect": ("metrics", "support-bundle"),
    "Import": ("import",),
}
_RENAMED: Final = {
    "beans": "metrics",
    "once": "scrape",
    "support": "support-bundle",
    "unit": "systemd-unit",
}


@click.group(
    cls=OneLineErrorGroup, sections=_SECTIONS, renamed=_RENAMED,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Scrape Kafka's JMX metrics and deliver them, exactly once, to Delta tables."""


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell completion script.

    For bash: jmxlake-agent completion bash > /etc/bash_completion.d/jmxlake-agent
    """
    from click.shell_completion import shell_complete

    program = context.find_root().command
    shell_complete(program, {}, "jmxlake-agent", "_JMXLAKE_AGENT_COMPLETE", f"{shell}_source")


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


for _command in (
    run, top, config, check, scrape, systemd_unit, completion, metrics, support_bundle, import_
):  # fmt: skip
    main.add_command(_command)


if __name__ == "__main__":
    main()
