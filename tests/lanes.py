"""Runs all but the unit tests in lanes side by side: what waits, and what computes.

Tests on brokers mostly wait for them, those of faults for agents that come back; those of Spark
compute; the rest is something of both. Each lane is a pytest of its own, with fixtures, ports and
folders of its own: nothing is shared but the machine, and each can be run alone to look into a
failure. Who computes gives way: who waits for a broker must not wait for a core as well. Four at a
time, of which all but Spark's mostly wait at first, keep two cores busy; when five were at once
that computed as well, what takes ten seconds alone took a minute, and tests that have clocks to
keep failed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from demo.jars import delta_jars
from demo.java import QUIET

if TYPE_CHECKING:
    from collections.abc import Sequence

SUBMIT_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
"""Where Spark's launcher finds further options of a driver's JVM."""

MARKS: Final = frozenset({"kafka", "spark", "waits", "reads", "chaos"})
"""Marks that choose a test's lane."""

_NEITHER: Final = "not kafka and not spark"

LANES: Final = {
    "clusters": (0, "kafka and waits"),
    "spark": (5, "spark and not kafka"),
    "other": (5, f"{_NEITHER} and not chaos and not reads"),
    "chaos": (5, f"{_NEITHER} and chaos"),
    "readers": (5, f"{_NEITHER} and reads and not chaos"),
    "kafka": (0, "kafka and not waits"),
}
"""By name: how far each gives way, and the marks of its tests. The longest come first.

Clusters of their own take longest, so they wait beside the one that modules share. All of Spark is
one lane: a second driver would load, compile and warm up the same once more.
"""

_LEFT_OUT: Final = "not versions and not nightly"
_APART: Final = ("tests/unit", "tests/deploy")  # deploy asks the package index, and takes long
AT_ONCE: Final = 4
_GRACE_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.2
_OUTCOME: Final = re.compile(r"=+ ((?:\d+ .+, )*\d+ .+ in [\d.]+s.*) =+|((?:FAILED|ERROR) .+)")
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")


class Lane:
    """A process whose output appears line by line, with its name in front."""

    def __init__(self, name: str, command: list[str]) -> None:
        self._name = name
        self._outcome: list[str] = []
        self._last = ""
        setpriv = shutil.which("setpriv")  # of util-linux: however we end, the lane ends, too
        guard = [setpriv, "--pdeathsig", "INT"] if setpriv else []
        # In a process group of its own: Ctrl-C reaches us, and we tell the lanes, once.
        self._process = subprocess.Popen(
            [*guard, *command], process_group=0, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._tell, daemon=True)
        self._reader.start()

    def _tell(self) -> None:
        assert self._process.stdout is not None
        for line in map(str.rstrip, self._process.stdout):
            sys.stdout.write(f"{self._name} | {line}\n")
            sys.stdout.flush()
            self._last = line
            if outcome := _OUTCOME.fullmatch(_COLOUR.sub("", line)):
                self._outcome.append(outcome[1] or outcome[2])

    @property
    def outcome(self) -> list[str]:
        """What failed and why, and how many passed, as pytest says it; or the last line."""
        return self._outcome or [self._last]

    @property
    def has_ended(self) -> bool:
        """Whether its process has."""
        return self._process.poll() is not None

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code, when it has ended and said everything."""
        code = self._process.wait(seconds)
        self._reader.join(seconds)  # a process that it forgot could keep the pipe open
        return code

    def interrupt(self) -> None:
        """As Ctrl-C does: fixtures end what they have started."""
        if not self.has_ended:
            self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Wait for an interrupted one, though not for ever."""
        try:
            return self.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self.wait(_GRACE_SECONDS)


def run(commands: dict[str, list[str]], at_once: int = AT_ONCE) -> int:
    """Run commands, a few at once, each to its end; 0 if all went well."""
    # A shell that starts us in the background has SIGINT ignored, by us and by all that we start.
    # The handler only notes it: an exception would lose a lane that is just being started.
    interruptions: list[int] = []
    for interruption in (signal.SIGINT, signal.SIGTERM):
        signal.signal(interruption, lambda number, _: interruptions.append(number))
    waiting = list(commands.items())
    lanes: dict[str, Lane] = {}
    codes: dict[str, int] = {}
    while len(codes) < len(commands) and not interruptions:
        while waiting and len(lanes) - len(codes) < at_once:
            name, command = waiting.pop(0)
            lanes[name] = Lane(name, command)
        ended = [name for name, lane in lanes.items() if name not in codes and lane.has_ended]
        codes |= {name: abs(lanes[name].wait()) for name in ended}
        if not ended:
            time.sleep(_POLL_SECONDS)
    if interruptions:
        for lane in lanes.values():
            lane.interrupt()
        codes = {name: abs(lane.end() or signal.SIGINT) for name, lane in lanes.items()}
    for name in sorted(codes, key=codes.__getitem__):  # a log's end is what people see
        sys.stdout.writelines(f"{name} | {line}\n" for line in lanes[name].outcome)
    return max(codes.values())


def spark_archive(jars: Path) -> Path:
    """Where the archive of the classes that Spark loads is, by the folder of Delta's jars."""
    return jars / "spark.jsa"


def files_of(marks: str) -> list[str]:
    """Return the files that contain the marks of a lane: to import the others takes seconds.

    tests/conftest.py refuses a test whose file does not contain its marks.
    """
    words = re.findall(r"(not )?(\w+)", marks)
    wanted = [f"mark.{word}" for absent, word in words if not absent and word != "and"]
    files = (path for path in sorted(Path("tests").rglob("test_*.py")) if not _is_apart(path))
    return [str(path) for path in files if _contains(path, wanted)]


def _is_apart(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _APART)


def _contains(path: Path, words: Sequence[str]) -> bool:
    text = path.read_text("utf-8")
    return all(word in text for word in words)


def chosen(marks: str) -> list[str]:
    """Return the arguments by which pytest runs the tests of a lane."""
    return [*files_of(marks), "-m", f"{marks} and {_LEFT_OUT}"]


def _pytest(nice: int, marks: str) -> list[str]:
    colour = f"--color={'yes' if sys.stdout.isatty() else 'no'}"
    return [
        *("nice", "-n", str(nice), sys.executable, "-m", "pytest", *chosen(marks)),
        *("--durations=10", "--durations-min=10", colour),
    ]


def main() -> None:
    options = sys.argv[1:]
    archive = f"-XX:SharedArchiveFile={spark_archive(delta_jars()[0].parent)}"
    os.environ[SUBMIT_OPTIONS] = f"{archive} {QUIET}"
    sys.exit(run({name: [*_pytest(*lane), *options] for name, lane in LANES.items()}))


if __name__ == "__main__":
    main()
