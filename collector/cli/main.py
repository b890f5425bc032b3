"""``jmxlake-agent``: the command group of the agent.

Exit codes: 0 success, 1 an error with its reason in one line, 2 wrong usage, 78 wrong
configuration.
"""

from typing import Final

import click

from collector.cli.check import check
from collector.cli.client_metrics import client_metrics
from collector.cli.command import OneLineErrorGroup
from collector.cli.import_prometheus import import_
from collector.cli.metrics import metrics
from collector.cli.run import run
from collector.cli.scrape import scrape
from collector.cli.shipped_files import config, systemd_unit
from collector.cli.support_bundle import support_bundle
from collector.cli.top.command import top

_SECTIONS: Final = {
    "Run": ("run", "top"),
    "Set up": ("config", "check", "scrape", "systemd-unit", "client-metrics", "completion"),
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


for _command in (
    run, top, config, check, scrape, systemd_unit, client_metrics, completion, metrics,
    support_bundle, import_,
):  # fmt: skip
    main.add_command(_command)


if __name__ == "__main__":
    main()
