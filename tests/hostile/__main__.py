"""Gives every hostile input to the product, and ends with one JSON line: ``make test-hostile``.

Each input is a hostile value in one place, given to one command, which is a process of its own.
The exit code is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.hostile import places, shared
from tests.hostile.canary import Canary
from tests.hostile.case import FIGURES, Found, Outcome, Room
from tests.hostile.rooms import furnish
from tests.hostile.watch import watched

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tests.hostile.case import Case, Command

CLAIM: Final = "No name, path, file or answer runs code, leaves its place, or ends in a traceback"
INPUTS_AT_LEAST: Final = 400
PEAK_MB_AT_MOST: Final = 400
_SHOWN_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Shown:
    """One input that was given.

    Attributes:
        place: Where it enters.
        case: The name that ``--only`` takes.
        name: The case and the command.
        inputs: Number of inputs that the command got.
        is_agent: Whether the agent got it.
        outcome: What came of it.
        found: What must not happen, and did.
    """

    place: str
    case: str
    name: str
    inputs: int
    is_agent: bool
    outcome: Outcome
    found: tuple[Found, ...]


@dataclass
class Findings:
    """What was shown so far."""

    inputs: list[Shown] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many inputs."""
        return sum(one.inputs for one in self.inputs)

    def figures(self) -> dict[str, object]:
        """Figures of the JSON line."""
        counted = Counter(figure for one in self.inputs for figure in {f.figure for f in one.found})
        places: Counter[str] = Counter()
        for one in self.inputs:
            places[one.place] += one.inputs
        agents = [one.outcome.peak_mb for one in self.inputs if one.is_agent]
        return {
            "inputs": self.count,
            **{name: counted[name] for name in FIGURES},
            "peak_mb": round(max(agents, default=0.0)),
            "by_place": dict(sorted(places.items())),
        }

    def missed(self, *, whole: bool) -> list[str]:
        """Bars that are missed; a part of the inputs need not be many."""
        figures = self.figures()
        bars = [name for name in FIGURES if figures[name]]
        bars += ["peak_mb"] * (int(str(figures["peak_mb"])) > PEAK_MB_AT_MOST)
        bars += ["inputs"] * (whole and self.count < INPUTS_AT_LEAST)
        return bars


def main(arguments: Sequence[str] | None = None) -> int:
    """Give the inputs, and print the figures."""
    given = _options().parse_args(arguments)
    cases = _chosen(places.every(), given.only)
    if given.list:
        sys.stdout.writelines(f"{one.full}\n" for one in cases)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    scratch = Path(tempfile.mkdtemp(prefix="jmxlake-hostile-"))
    try:
        findings = _given(cases, scratch, given.jobs, keep=given.keep)
    finally:
        shared.end()
        if given.keep:
            _say(f"hostile: everything is in {scratch}")
        else:
            shutil.rmtree(scratch, ignore_errors=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    _say(f"hostile: {used.ru_utime + used.ru_stime:.0f} s of processor time")
    if given.slowest:
        _say_slowest(findings, given.slowest)
    figures, missed = findings.figures(), findings.missed(whole=not given.only)
    if missed:
        _say(f"hostile: missed: {', '.join(missed)}")
        failed = sorted({one.case for one in findings.inputs if one.found})
        for name in failed:
            _say(f"hostile: again: python -m tests.hostile --keep --only {shlex.quote(name)}")
    sys.stdout.write(json.dumps({"claim": CLAIM, "figures": figures, "ratios": {}}) + "\n")
    return int(bool(missed))


def _options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    made.add_argument("--only", action="append", metavar="PLACE[/NAME]", help="these; repeatable")
    made.add_argument("--list", action="store_true", help="print the cases, and run none")
    made.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="cases at a time")
    made.add_argument("--keep", action="store_true", help="keep the scratch folder")
    made.add_argument("--slowest", type=int, default=0, metavar="N", help="name the N slowest")
    return made


def _chosen(cases: Iterable[Case], only: Sequence[str] | None) -> list[Case]:
    every = list(cases)
    names = Counter(one.full for one in every)
    assert len(names) == len(every), [name for name, count in names.items() if count > 1]
    if not only:
        return every
    chosen = [
        one for one in every
        if any(fnmatch.fnmatchcase(one.full, wanted) or one.place == wanted for wanted in only)
    ]  # fmt: skip
    if not chosen:
        sys.exit(f"hostile: no case is called {', '.join(only)}; --list names them")
    return chosen


def _given(cases: Sequence[Case], scratch: Path, jobs: int, *, keep: bool) -> Findings:
    findings, started, told = Findings(), time.monotonic(), 0.0
    with ThreadPoolExecutor(jobs) as pool:
        running = [
            pool.submit(_give, case, scratch / f"{number:04}", keep=keep)
            for number, case in enumerate(cases)
        ]
        try:
            for done, one in enumerate(as_completed(running), 1):
                _say_failed(shown := one.result())
                findings.inputs += shown
                now = time.monotonic()
                if now - told > _SHOWN_SECONDS or done == len(cases):
                    told = now
                    left = (now - started) / done * (len(cases) - done)
                    bad = sum(bool(one.found) for one in findings.inputs)
                    _say(f"hostile: {done} of {len(cases)} cases, {findings.count} inputs, "
                         f"{bad} failed, {left / 60:.1f} min left")  # fmt: skip
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return findings


def _give(case: Case, folder: Path, *, keep: bool) -> list[Shown]:
    with Canary() as canary, (room := Room(folder, canary.where)).stack:
        furnish(room)
        try:
            case.lay(room)
        except Exception as error:  # noqa: BLE001 - the others go on
            return [_not_laid(case, error)]
        shown = [_input(case, command, room, canary) for command in case.commands]
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return shown


def _not_laid(case: Case, error: Exception) -> Shown:
    """A case that nothing was shown of, which is a failure."""
    found = Found("wrong_codes", f"could not be laid out: {type(error).__name__}: {error}"[:300])
    nothing = Outcome(None, "", "", 0.0, 0.0, frozenset())
    return Shown(
        case.place, case.full, case.full, 0, is_agent=False, outcome=nothing, found=(found,)
    )


def _input(case: Case, command: Command, room: Room, canary: Canary) -> Shown:
    if command.prepared:
        command.prepared(room)
    outcome, found = watched(command, room)
    if command.judged:
        found += command.judged(room, outcome)
    found += [Found("connections", call) for call in canary.taken()]
    name = f"{case.full}: {command.shown}"
    return Shown(
        case.place, case.full, name, command.inputs, command.is_agent, outcome, tuple(found)
    )


def _say_failed(inputs: Sequence[Shown]) -> None:
    for one in inputs:
        for found in one.found:
            _say(f"{found.figure:13} {one.name}: {found.text}")
        if one.is_agent and one.outcome.peak_mb > PEAK_MB_AT_MOST:
            _say(f"peak_mb       {one.name}: {one.outcome.peak_mb:.0f} MB")


def _say_slowest(findings: Findings, count: int) -> None:
    for one in sorted(findings.inputs, key=lambda one: -one.outcome.seconds)[:count]:
        _say(f"hostile: {one.outcome.seconds:5.1f} s {one.outcome.peak_mb:4.0f} MB {one.name}")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
