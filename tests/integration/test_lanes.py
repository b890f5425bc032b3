"""What runs the lanes of ``make test``: it fails when one fails, and leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.lanes import LANES

ROOT = Path(__file__).parents[2]
_RUNS = "from tests.lanes import run; import sys; sys.exit(run({commands!r}))"
_SLEEPS = """
import time
try:
    print("begun", flush=True)
    time.sleep(60)
finally:
    print("cleaned up")
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def started(commands: dict[str, list[str]]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        python(_RUNS.format(commands=commands)), cwd=ROOT, text=True, stdout=subprocess.PIPE
    )


MARKS = ("kafka", "spark", "waits", "reads", "chaos")


def lanes_of(marks: dict[str, bool]) -> list[str]:
    wanted = {name: Expression.compile(one) for name, (_, one) in LANES.items()}
    return [name for name, one in wanted.items() if one.evaluate(lambda mark, **_: marks[mark])]


def test_lanes_have_a_test_of_any_marks_once() -> None:
    for marked in product((False, True), repeat=len(MARKS)):
        marks = dict(zip(MARKS, marked, strict=True))
        assert len(lanes_of(marks)) == 1, marks


def test_failed_lane_leaves_others_running() -> None:
    well, wrong = python("import time; time.sleep(1); print('done')"), python("exit(3)")
    for commands in ({"a": well, "b": wrong}, {"a": wrong, "b": well}):
        with started(commands) as process:
            said, _ = process.communicate(timeout=120)
        assert process.returncode == 3
        assert "| done\n" in said
    with started({"a": well, "b": well}) as process:
        process.communicate(timeout=120)
    assert process.returncode == 0


_ENDS_WHEN_FOUR_HAVE_BEGUN = """
import os, sys, time
print("begins", flush=True)
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
while len(os.listdir(sys.argv[1])) < 4:
    time.sleep(0.05)
time.sleep(0.5)
print("ends")
"""


def test_next_lane_starts_after_an_ended_one(tmp_path: Path) -> None:
    say = [*python(_ENDS_WHEN_FOUR_HAVE_BEGUN), str(tmp_path)]
    with started(dict.fromkeys("abcde", say)) as process:
        said, _ = process.communicate(timeout=120)
    lines = said.splitlines()
    assert set(lines[:4]) == {f"{name} | begins" for name in "abcd"}
    assert lines.index("e | begins") > min(lines.index(f"{name} | ends") for name in "abcd")
    assert process.returncode == 0


_PYTEST = """
print("1 passed in a word")
print("\\x1b[36m\\x1b[1m==== short test summary info ====\\x1b[0m")
print("\\x1b[31mFAILED\\x1b[0m a::b - assert 1 == 2")
print("=== 1 failed, 2 passed in 3.45s (0:00:03) ===")
print("nanobind: leaked 3 instances!")
raise SystemExit(1)
"""


def test_failures_are_printed_last() -> None:
    with started(
        {"a": python(_PYTEST), "b": python("import time; time.sleep(1); print('done')")}
    ) as it:
        said, _ = it.communicate(timeout=120)
    assert said.splitlines()[-3:] == [
        "b | done", "a | FAILED a::b - assert 1 == 2", "a | 1 failed, 2 passed in 3.45s (0:00:03)",
    ]  # fmt: skip


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_both_in_order(by: signal.Signals) -> None:
    with started({"a": python(_SLEEPS), "b": python(_SLEEPS)}) as process:
        assert process.stdout is not None
        begun = {process.stdout.readline() for _ in range(2)}
        assert begun == {"a | begun\n", "b | begun\n"}
        process.send_signal(by)
        said, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert said.count("a | cleaned up\n") == said.count("b | cleaned up\n") == 1
