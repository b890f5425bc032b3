"""``jmxlake-agent``: the command group of the agent, and the commands that print files for editing.

Exit codes: 0 success, 1 an error with its reason in one line, 2 wrong usage, 78 wrong
configuration.
"""

import sysconfig
from pathlib import Path
from typing import Final

import click
from click.shell_completion import shell_complete

from collector.cli.command import OneLineErrorGroup

_COMMANDS: Final = {
    "Run": {
        "run": ("run", "Scrape on schedule until SIGTERM or Ctrl-C."),
        "top": ("top", "Show current problems, worst first."),
    },
    "Set up": {
        "config": ("main", "Print the reference configuration with all keys."),
        "schema": ("main", "Print the JSON Schema of the configuration."),
        "check": ("check", "Test all connections and print failures with fixes."),
        "scrape": ("scrape", "Scrape once and print non-zero values."),
        "client-metrics": (
            "client_metrics",
            "Manage the subscription to client throttle times (KIP-714).",
        ),
        "systemd-unit": ("main", "Print the systemd unit."),
        "completion": ("main", "Print a shell completion script."),
    },
    "Inspect": {
        "metrics": ("metrics", "List collected metrics, MBeans, units and Kafka versions."),
        "support-bundle": ("support_bundle", "Collect versions, logs and state for a bug report."),
    },
    "Import": {
        "import": ("import_prometheus", "Import history from before the agent was installed."),
    },
}
"""The module and the first sentence of each command, by section of ``--help``."""
_RENAMED: Final = {
    "beans": "metrics",
    "once": "scrape",
    "support": "support-bundle",
    "unit": "systemd-unit",
}


@click.group(
    cls=OneLineErrorGroup, package="collector.cli", sections=_COMMANDS, renamed=_RENAMED,
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
    program = context.find_root().command
    shell_complete(program, {}, "jmxlake-agent", "_JMXLAKE_AGENT_COMPLETE", f"{shell}_source")


@click.command
def config() -> None:
    """Print the reference configuration with all keys.

    Each key has its default value.
    """
    click.echo(_shipped("agent.yaml"), nl=False)


@click.command
def schema() -> None:
    """Print the JSON Schema of the configuration.

    Editors use it for completion and checks. A file that jmxlake-agent config printed names the
    schema of its version. For an editor without network access, write the output to a file and
    name that file in the first line of the configuration: # yaml-language-server: $schema=FILE
    """
    from collector.config.schema import agent_schema
    from lakehouse.tables import json_schema

    click.echo(json_schema.text(agent_schema()), nl=False)


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
    checkout = Path(__file__).parents[2] / "deploy"
    installed = Path(sysconfig.get_path("data")) / "share" / "jmxlake"
    return ((checkout if checkout.is_dir() else installed) / name).read_text("utf-8")


if __name__ == "__main__":
    main()
