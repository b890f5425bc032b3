"""``jmxlake-agent``: the group of commands beside a broker, and its completion in a shell.

Exit codes: 0 well, 1 something is wrong and one line says what, 2 the command was called wrongly,
78 the configuration is wrong.
"""

import click

from collector.cli.beans import beans
from collector.cli.check import check
from collector.cli.command import OneLine
from collector.cli.import_prometheus import past
from collector.cli.once import once
from collector.cli.run import run
from collector.cli.shipped_files import config, unit
from collector.cli.support_bundle import support
from collector.cli.top.command import top


@click.group(cls=OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Read a Kafka broker's JMX beans and keep them, exactly once, in Delta tables."""


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


for _command in (run, once, top, check, beans, past, support, config, unit, completion):
    main.add_command(_command)


if __name__ == "__main__":
    main()
