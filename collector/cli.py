"""``jmxlake-agent``: the commands beside a broker.

Exit codes: 0 well, 1 something is wrong and one line says what, 2 the command was called wrongly,
78 the configuration is wrong.
"""

from __future__ import annotations

import click

from collector.commands.beans import beans
from collector.commands.check import check
from collector.commands.common import OneLine
from collector.commands.completion import completion
from collector.commands.once import once
from collector.commands.reference import config, unit
from collector.commands.run import run
from collector.commands.support import support
from collector.commands.top import top


@click.group(cls=OneLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="jmxlake")
def main() -> None:
    """Read a Kafka broker's JMX beans and keep them, exactly once, in Delta tables."""


for _command in (run, once, top, check, beans, support, config, unit, completion):
    main.add_command(_command)


if __name__ == "__main__":
    main()
