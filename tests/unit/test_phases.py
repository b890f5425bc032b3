"""How far a command is: a live line on a terminal, a line per phase in a job's log."""

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
from lakehouse.cli.phases import Phase, about
from lakehouse.engines.engine import Costs, PartDone
from lakehouse.engines.packets import Cost
from lakehouse.rollup.run import Done

pytestmark = pytest.mark.slow

_ROLLUP: Final = """
import time
from lakehouse.cli.phases import phase
from lakehouse.engines.engine import Remark
from lakehouse.rollup.run import Done
with phase("rollup") as shown:
    shown.step("feed: 48 hours in 2 batches")
    shown.watch(Done(0, 48, 0, 2469134))
    for table in range(58):
        shown.step(f"table_{table}")
    shown.watch(Done(24, 48, 1234567, 2469134))
    shown.step(Remark("rows set aside: 3 too late, 0 misdated"))
    time.sleep(0.6)
    shown.result = "48 hours rolled up"
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


def test_terminal_shows_hours_and_the_time_left() -> None:
    seen = on_a_terminal(_ROLLUP)
    assert any(
        re.search(r"jmxlake: rollup: 24 of 48 hours, [\d,]+ rows/s, about 5 s left", one)
        for one in seen
    )
    assert not any("table_" in one for one in seen)
    assert "jmxlake: rollup: 48 hours rolled up, 1 s" in seen[-1]
    assert "left" not in seen[-1], "only the result stays on the screen"


def test_log_has_a_line_per_phase_and_one_per_remark() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _ROLLUP], capture_output=True, text=True, check=True
    )
    assert run.stdout == ""
    assert run.stderr.splitlines() == [
        "jmxlake: rollup: rows set aside: 3 too late, 0 misdated",
        "jmxlake: rollup: 48 hours rolled up, 1 s",
    ]


def test_rate_and_time_left_follow_the_rows_since_the_first_count() -> None:
    now = [0.0]
    running = Phase("rollup", clock=lambda: now[0])
    now[0] = 100
    assert running.now == "rollup: 1 min 40 s so far"
    running.watch(Done(0, 12, 0, 40_000))
    assert running.now == "rollup: 0 of 12 hours, 1 min 40 s so far"
    now[0] = 107
    running.watch(Done(3, 12, 10_000, 40_000))
    assert running.now == "rollup: 3 of 12 hours, 1,420 rows/s, about 20 s left"
    running.watch(Done(12, 12, 40_000, 40_000))
    assert running.now == "rollup: 12 of 12 hours, 5,710 rows/s, 1 min 47 s so far"
    running.result = "12 hours rolled up"
    assert running.summary == "rollup: 12 hours rolled up, 1 min 47 s"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "5 s"), (7, "5 s"), (33, "35 s"), (59, "60 s"), (61, "1 min"), (3599, "60 min"),
     (9000, "2.5 h")],
)  # fmt: skip
def test_estimate_has_few_digits(seconds: float, words: str) -> None:
    assert about(seconds) == f"about {words}"


def test_parts_of_the_running_batch_count_as_progress() -> None:
    now = [0.0]
    running = Phase("rollup", lambda: now[0])
    running.watch(Done(0, 48, 0, 100_000))
    now[0] = 10
    running.step(PartDone("batch 1 of 2", 3, 6, 25_000))
    assert running.now == (
        "rollup: 0 of 48 hours, batch 1 of 2: 3 of 6 parts, 2,500 rows/s, about 30 s left"
    )
    running.watch(Done(24, 48, 50_000, 100_000))
    assert "parts" not in running.now


def test_log_of_a_long_rollup_has_parts_and_costs() -> None:
    now, said = [0.0], list[str]()
    running = Phase("rollup", lambda: now[0], said.append)
    running.watch(Done(0, 48, 0, 100_000))
    costs = [Cost(25_000, seconds, 400 << 20) for seconds in (4.0, 2.0, 2.0, 9.0)]
    for part in range(1, 5):
        now[0] = (4, 6, 7, 15)[part - 1]
        running.step(PartDone("batch 1 of 1", part, 4, 25_000 * part))
    running.watch(Done(48, 48, 100_000, 100_000, Costs.of_parts(costs)))
    assert said == [
        "rollup: 0 of 48 hours, batch 1 of 1: 2 of 4 parts, 8,330 rows/s, about 5 s left",
        "rollup: 0 of 48 hours, batch 1 of 1: 4 of 4 parts, 6,660 rows/s, 15 s so far",
        "rollup: 48 of 48 hours, 6,660 rows/s, 15 s so far, 4 parts computed, "
        "the slowest in 9.0 s (3.0 times the median), peak memory 400.0 MiB",
    ], "the first line after 5 s, another one not within 5 s"


def test_phase_that_fails_has_no_result() -> None:
    code = "from lakehouse.cli.phases import phase\nwith phase('facts'): raise SystemExit(7)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (7, "")


def test_help_tells_the_exit_codes_and_completion_is_a_script() -> None:
    for command in ("rollup", "verify"):
        told = CliRunner().invoke(main, [command, "--help"]).stdout
        assert "exits with " in " ".join(told.split())
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
