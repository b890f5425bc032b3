"""``jmxlake-job``: the commands of ``jmxlake`` for platforms that run an entry point in-process.

Databricks treats every ``SystemExit`` as a failure, even with code 0, so the only sign of a failure
is an exception. Its parameters do not support conditions, so options without a value are ignored,
such as ``--owners=`` with an empty variable.
"""

import sys
from collections.abc import Sequence

from lakehouse.errors import JobFailedError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and return.

    Args:
        arguments: The command and its options. Default: the arguments of the process.

    Raises:
        JobFailedError: The exit code is not 0. Standard error contains the reason.
    """
    from lakehouse.cli.main import main as commands

    words = given(sys.argv[1:] if arguments is None else arguments)
    try:
        commands.main(args=words, prog_name="jmxlake")
    except SystemExit as end:
        if end.code not in (0, None):
            command = words[0] if words else "without a command"
            raise JobFailedError(
                f"jmxlake {command} failed with exit code {end.code}. See the reason above"
            ) from None


def given(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without options that have no value."""
    return [text for text in arguments if not (text.startswith("--") and text.endswith("="))]
