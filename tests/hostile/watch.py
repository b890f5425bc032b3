"""Runs one command of the product and notices what it must not do.

The command is a process of its own session, started as a person would. While it runs its listening
sockets are looked up every few milliseconds; its peak of resident memory is the kernel's
(``wait4``). The room's files are compared with those of before.
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from tests.hostile.case import NEIGHBOUR, OUTSIDE, SECRET, Found, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.hostile.case import Command, Room

_POLL_SECONDS: Final = 0.05
_LISTENING: Final = "0A"
_AFTER_TERM_SECONDS: Final = 30.0
_MOST_BYTES: Final = 1 << 20
_TRACES: Final = re.compile(
    r"Traceback \(most recent|panicked at|<unknown>|^\s*at [\w.$/@<>]+\([\w. ]+(:\d+)?\)"
    r"|stack backtrace|Fatal Python error|^Exception in thread|core dumped",
    re.MULTILINE,
)
_OWN_OUTPUT: Final = ("out", "home/.cache", "tmp", "streams")
"""Places that every command may write: what it was told to, its cache, and spill files."""
_PROGRESS: Final = re.compile(r"^jmxlake(-agent)?: ")


def program(name: str) -> str:
    """Path of one of the product's programs, in this environment."""
    return sys.executable if name == "python" else str(Path(sys.executable).with_name(name))


def watched(command: Command, room: Room) -> tuple[Outcome, list[Found]]:
    """Run a command in a room.

    Returns:
        What came of it, and what it did that it must not.
    """
    before = _snapshot(room.path)
    beside: list[Found] = []
    outcome = _run(command, room, beside)
    changed = _changed(before, _snapshot(room.path))
    writes = (*_OWN_OUTPUT, *command.writes)
    found = [*_of_streams(command, outcome), *_of_files(changed, writes)]
    found += beside
    found += _of_content(room, outcome, changed)
    if len(outcome.ports) > command.listens:
        found.append(Found("ports_opened", ", ".join(sorted(outcome.ports))))
    return outcome, found


def _run(command: Command, room: Room, beside: list[Found]) -> Outcome:
    words = [program(command.words[0]), *map(room.fill, command.words[1:])]
    streams = room.path / "streams"
    streams.mkdir(exist_ok=True)
    with (streams / "out").open("wb") as out, (streams / "err").open("wb") as err:
        started = time.monotonic()
        process = subprocess.Popen(
            words, cwd=room.path, env=_environ(command.environ, room), stdin=subprocess.DEVNULL,
            stdout=out, stderr=err, start_new_session=True,
        )  # fmt: skip
        watch = _Watch(process, started + command.seconds)
        if command.meanwhile:
            beside += command.meanwhile(room, watch.runs)
            watch.end()
        code, peak = watch.wait()
        seconds = time.monotonic() - started
    told = ((streams / name).read_bytes().decode(errors="replace") for name in ("out", "err"))
    return Outcome(code, *told, seconds, peak, frozenset(watch.ports))


def _environ(more: Mapping[str, str], room: Room) -> dict[str, str]:
    """Little of ours, so that an input can be repeated; a secret that no output may have."""
    kept = ("PATH", "LANG", "LC_ALL", "JAVA_HOME", "VIRTUAL_ENV")
    own = {name: os.environ[name] for name in kept if name in os.environ}
    own |= {
        "HOME": str(room.path / "home"), "TMPDIR": str(room.path / "tmp"), "COLUMNS": "100",
        "HOSTILE_PASSWORD": SECRET, "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    return own | {name: room.fill(value) for name, value in more.items()}


class _Watch:
    """A process that runs, until a deadline."""

    def __init__(self, process: subprocess.Popen[bytes], until: float) -> None:
        self.ports: set[str] = set()
        self._process, self._until = process, until
        self._ended: tuple[int, float] | None = None
        self._killed = False
        self._peak_kb = 0

    def runs(self) -> bool:
        """Look at it once more; whether it still runs."""
        if self._ended is None:
            self._look()
        return self._ended is None

    def end(self) -> None:
        """Ask it to end."""
        if self.runs():
            os.kill(self._process.pid, signal.SIGTERM)
            self._until = time.monotonic() + _AFTER_TERM_SECONDS

    def wait(self) -> tuple[int | None, float]:
        """Its exit code and peak; None after its deadline."""
        while self.runs():
            if time.monotonic() > self._until and not self._killed:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._killed = True
            time.sleep(_POLL_SECONDS)
        assert self._ended is not None
        self._stop_children()
        code, peak = self._ended
        return None if self._killed else code, peak

    def _look(self) -> None:
        self.ports |= _listening(self._process.pid)
        self._peak_kb = max(self._peak_kb, _peak_kb(self._process.pid))
        pid, status, used = os.wait4(self._process.pid, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            self._process.returncode = code
            # Of a small process it is ours: it was a copy of this one until it became another.
            peak = used.ru_maxrss if used.ru_maxrss > _peak_kb(os.getpid()) else self._peak_kb
            self._ended = code, peak * 1024 / 1e6

    def _stop_children(self) -> None:
        """End what it left behind in its session."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return


def _peak_kb(pid: int) -> int:
    """Largest resident memory of a process so far; 0 for one that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return int(found[1]) if found else 0


def _listening(pid: int) -> set[str]:
    """Listening sockets of a process and its children."""
    try:
        own = {inode for one in _family(pid) for inode in _sockets(one)}
        return {place for inode, place in _listeners(pid) if inode in own}
    except OSError:  # it has just ended
        return set()


def _family(pid: int) -> Iterator[int]:
    yield pid
    for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - often, and twice as quick
        for child in Path(f"/proc/{pid}/task/{thread}/children").read_text("ascii").split():
            yield from _family(int(child))


def _sockets(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    for one in os.listdir(folder):  # noqa: PTH208 - twice as quick, fifty times a second
        try:
            target = os.readlink(f"{folder}/{one}")  # noqa: PTH115 - the same
        except OSError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]


def _listeners(pid: int) -> Iterator[tuple[str, str]]:
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING:
                address, port = fields[1].split(":")
                yield fields[9], f"{address}:{int(port, 16)}"


def _of_streams(command: Command, outcome: Outcome) -> Iterator[Found]:
    both = f"{outcome.out}\n{outcome.err}"
    if outcome.code is None:
        yield Found("hangs", f"still ran after {command.seconds:g} s")
    elif outcome.code < 0:
        # Who is asked to end while it starts has no handler yet.
        if not (command.meanwhile and outcome.code == -signal.SIGTERM):
            yield Found("tracebacks", f"signal {-outcome.code}")
    elif outcome.code not in command.codes:
        yield Found("wrong_codes", f"exit code {outcome.code}: {_last(both)}")
    if found := _TRACES.search(both):
        yield Found("tracebacks", f"{found[0].strip()}: {_last(both)}")
    lines = [one for one in outcome.err.splitlines() if one and not _PROGRESS.match(one)]
    # How a command is called takes as many lines as it has arguments.
    is_usage = outcome.err.startswith("Usage: ")
    if len(lines) > command.lines and not command.meanwhile and not is_usage:
        yield Found("tracebacks", f"{len(lines)} lines of error: {lines[0][:120]}")


def _last(text: str) -> str:
    lines = [one for one in text.splitlines() if one.strip()]
    return (lines or [""])[-1].strip()[:200]


_Files = dict[str, tuple[int, int, int]]


def _snapshot(folder: Path) -> _Files:
    """Kind, size and time of each file, by its place in a folder."""
    found: _Files = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            place = os.path.join(parent, name)  # noqa: PTH118 - thousands of them
            try:
                told = os.lstat(place)
            except FileNotFoundError:
                continue
            is_folder = stat.S_ISDIR(told.st_mode)
            key = os.path.relpath(place, folder)
            found[key] = (
                told.st_mode,
                *((0, 0) if is_folder else (told.st_size, told.st_mtime_ns)),
            )
    return found


def _changed(before: _Files, after: _Files) -> set[str]:
    return {one for one in before.keys() | after.keys() if before.get(one) != after.get(one)}


def _of_files(changed: set[str], writes: tuple[str, ...]) -> Iterator[Found]:
    for place in sorted(changed):
        if place == "outside/ran" or place.startswith("outside/ran"):
            yield Found("code_run", f"{place} was written")
        elif not _is_below(place, writes):
            yield Found("files_outside", f"{place} was changed")


def _is_below(place: str, writes: tuple[str, ...]) -> bool:
    # A folder on the way to what may be written has to be there.
    return any(
        fnmatch(place, one) or place.startswith(f"{one}/") or one.startswith(f"{place}/")
        for one in writes
    )


def _of_content(room: Room, outcome: Outcome, changed: set[str]) -> Iterator[Found]:
    shown = {"output": f"{outcome.out}\n{outcome.err}".encode()}
    for place in sorted(changed):
        file = room.path / place
        if file.is_file() and not place.startswith(("outside", "streams")):
            shown[place] = _content(file)
    for where, content in shown.items():
        if SECRET.encode() in content:
            yield Found("secrets_seen", f"a password is in {where}")
        if OUTSIDE.encode() in content:
            yield Found("files_outside", f"a file beside the lake was read into {where}")
        if NEIGHBOUR.encode() in content:
            yield Found("files_outside", f"the lake next door was read into {where}")


def _content(file: Path) -> bytes:
    """Bytes of a file; of Parquet, which is compressed, its values."""
    if file.suffix == ".parquet":
        try:
            return str(pq.read_table(file, partitioning=None).to_pydict()).encode(errors="replace")
        except (OSError, ValueError):  # a hostile one
            pass
    with file.open("rb") as stream:
        return stream.read(_MOST_BYTES * 16)
