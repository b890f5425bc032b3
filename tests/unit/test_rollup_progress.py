"""How far a rollup is, as a person sees it: a bar on a terminal, lines in a job's log."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from typing import Final

import pyte
import pytest
from click.testing import CliRunner

from lakehouse.cli.main import main

pytestmark = pytest.mark.slow

_TELLS: Final = """
import time
from lakehouse.cli.rollup import progress_display
from lakehouse.rollup.run import Done
with progress_display() as (step, watch):
    step("feed: 48 hours in 2 batches")
    watch(Done(0, 48, 0))
    step("topics")
    watch(Done(24, 48, 1234567))
    time.sleep(0.5)
"""


def on_a_terminal(code: str) -> list[str]:
    """Everything that was on the screen of a terminal at some instant."""
    ours, theirs = pty.openpty()
    screen = pyte.Screen(120, 10)
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    stream, seen = pyte.ByteStream(screen), []
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, env=environment, stderr=theirs, stdout=theirs) as process:
        os.close(theirs)
        while True:
            try:
                said = os.read(ours, 4096)
            except OSError:
                break
            if not said:
                break
            # Step by step: who is slow to read gets all that a terminal showed in one piece.
            for step in re.findall(rb"\x1b?[^\x1b]*", said):
                stream.feed(step)
                seen.append("\n".join(screen.display))
        process.wait(60)
    os.close(ours)
    return seen


def test_a_terminal_shows_hours_and_rows() -> None:
    seen = on_a_terminal(_TELLS)
    assert any("24 of 48 hours, 1,234,567 rows" in one for one in seen)
    assert any("topics" in one for one in seen)


def test_a_log_has_lines() -> None:
    run = subprocess.run([sys.executable, "-c", _TELLS], capture_output=True, text=True, check=True)
    assert run.stdout == ""
    assert run.stderr.splitlines() == [
        "jmxlake: feed: 48 hours in 2 batches",
        "jmxlake: 0 of 48 hours, 0 rows",
        "jmxlake: topics",
        "jmxlake: 24 of 48 hours, 1,234,567 rows",
    ]


def test_help_tells_the_exit_codes_and_completion_is_a_script() -> None:
    for command in ("rollup", "verify"):
        told = CliRunner().invoke(main, [command, "--help"]).stdout
        assert "Exits with " in told
        assert "with 3" in " ".join(told.split())
    for shell in ("bash", "zsh", "fish"):
        assert "_JMXLAKE_COMPLETE" in CliRunner().invoke(main, ["completion", shell]).stdout
    words = {"COMP_WORDS": "jmxlake rollup LAKE --ti", "COMP_CWORD": "3"}
    run = subprocess.run(
        [sys.executable, "-c", "from lakehouse.cli.main import main; main(prog_name='jmxlake')"],
        env={**os.environ, **words, "_JMXLAKE_COMPLETE": "bash_complete"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "plain,--tidy" in run.stdout
