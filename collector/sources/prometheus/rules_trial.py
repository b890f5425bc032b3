"""A trial of an exporter's rules in a process of its own, with a limit of CPU time.

Python cannot stop a regular expression that takes for ever, and all threads of the agent would
wait for it. So the trial applies the rules to every bean of the shipped catalogue first.
"""

import resource
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from collector import catalogue
from collector.errors import ConfigError
from collector.sources.base.beans import asked_for
from collector.sources.prometheus import exporter_rules

_MOST_SECONDS: Final = 10
"""CPU time; published rules take less than one second."""


def check_time(path: Path) -> None:
    """Make sure that the rules in a file can be applied in time.

    Raises:
        ConfigError: They cannot.
    """
    try:
        state = path.stat()
    except OSError:
        return  # its reader names it
    if not _is_in_time(path, state.st_ino, state.st_mtime_ns, state.st_size):
        raise ConfigError(
            f"{path}: the exporter's rules: their patterns take more than {_MOST_SECONDS} s to"
            " match; take out repetitions within repetitions, such as (.+)+"
        )


@cache  # the sources of an agent share a file
def _is_in_time(path: Path, *_: int) -> bool:
    trial = subprocess.run(
        [sys.executable, "-m", __name__, str(path), str(_MOST_SECONDS)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return trial.returncode != -signal.SIGXCPU


def _apply(path: Path) -> None:
    rules = exporter_rules.read(path)
    for metric in (one for family in catalogue.load().families for one in family.metrics):
        for question in asked_for(metric):
            rules.shown(question, tuple(metric.labels))
            rules.depends_on(question, tuple(metric.labels))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2]) + 1))
    _apply(Path(sys.argv[1]))
