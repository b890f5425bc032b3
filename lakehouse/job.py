"""``jmxlake-job``: the commands of ``jmxlake`` for platforms that run an entry point in-process.

Databricks takes any ``SystemExit`` for a failure, also that of a command which went well, and only
an exception makes a task fail. Its parameters know no conditions, so an option without a value is
left out, such as ``--owners=`` of an empty variable.
"""

import sys
from collections.abc import Sequence

from lakehouse.errors import JobFailedError


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and return.

    Args:
        arguments: The command and its options, of which those without a value are left out; by
            default those of the process.

    Raises:
        JobFailedError: It ended with another code than 0; its output is on standard error.
    """
    from lakehouse.cli.main import main as commands  # noqa: PLC0415 - a notebook may want only the above

    words = given(sys.argv[1:] if arguments is None else arguments)
    try:
        commands.main(args=words, prog_name="jmxlake")
    except SystemExit as end:
        if end.code not in (0, None):
            command = words[0] if words else "without a command"
            raise JobFailedError(
                f"jmxlake {command} ended with {end.code}; its last line above says why"
            ) from None


def given(arguments: Sequence[str]) -> list[str]:
    """Arguments without the options that have no value."""
    return [one for one in arguments if not (one.startswith("--") and one.endswith("="))]
