"""A folder with a lake, a spool and the lives of one agent, which can be ended in any way."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Self

import psutil

from demo.errors import DemoError
from tests.rig.clocks import SteppableClock
from tests.rig.exactly_once import judge
from tests.rig.life import LifePlan, live
from tests.rig.testimony import Life, testimony
from tests.rig.told import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.context import ForkServerProcess
    from pathlib import Path

    from tests.rig.verdict import Verdict

# Everything an agent needs is imported once; each life is a fork of that process, made in
# milliseconds. It never used deltalake, whose threads would not survive a fork.
_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.rig.life"])
_STARTING: Final = threading.Lock()  # the fork server is asked by one thread at a time
_PATIENCE: Final = 300.0


@contextmanager
def _no_main() -> Iterator[None]:
    """A life needs nothing of the program that starts it, which it would import at its start."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


class Process:
    """One life, from outside."""

    def __init__(self, plan: LifePlan) -> None:
        self.plan = plan
        self._process: ForkServerProcess = _CONTEXT.Process(target=live, args=(plan,), daemon=True)
        with _STARTING, _no_main():
            self._process.start()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.is_alive()

    def strike(self) -> None:
        """SIGKILL, from whatever thread; it may be dead already."""
        self._process.kill()

    def kill(self) -> None:
        """SIGKILL, and it is dead."""
        self.strike()
        self.wait()

    def crash(self) -> None:
        """SIGSEGV, as a fault of the JVM in it would end it."""
        os.kill(self._process.pid or 0, signal.SIGSEGV)

    def pause(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT so much later."""
        os.kill(self._process.pid or 0, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self._process.pid or 0, signal.SIGCONT)

    def memory_mb(self) -> tuple[float, float]:
        """Its resident memory, and the part of that which is of no file."""
        found = psutil.Process(self._process.pid).memory_info()
        return found.rss / 1e6, (found.rss - found.shared) / 1e6

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Its exit code, negative where a signal ended it."""
        self._process.join(_PATIENCE)
        code = self._process.exitcode
        if code is None:
            self._process.kill()
            raise DemoError(f"it did not end: {self.log()[-500:]}")
        return code

    def log(self) -> str:
        """What it said."""
        return self.plan.log.read_text() if self.plan.log.exists() else ""


class Rig:
    """One agent's spool and lake in a folder, and what its lives were given.

    Args:
        folder: Where everything goes; it is made.
        seed: Of what the beans say.
        settings: Further settings of every life.

    Attributes:
        lake: The folder in which the check finds the lake.
        spool: The spool's file.
        clock: How far the clock of live agents is off: see ``SteppableClock.set``.
    """

    def __init__(self, folder: Path, seed: int, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.seed = folder, seed
        self.lake: Path = settings.pop("lake", folder / "lake")
        self.spool: Path = settings.pop("spool", folder / "spool" / "spool.db")
        url = settings.pop("url", str(self.lake))
        self._settings = {"lake": url, "spool": self.spool, **settings}
        self._numbers = itertools.count(1)
        self._witnesses: list[Path] = []
        self._running: list[Process] = []
        self._virtual_us = 1_790_000_000_000_000
        self.clock = folder / "clock"
        SteppableClock.set(self.clock, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            if process.alive:
                process.kill()

    def start(self, **settings: Any) -> Process:
        """A live agent."""
        process = Process(self._plan(**settings))
        self._running = [one for one in self._running if one.alive] + [process]
        return process

    def paced(self, seconds: float, *, rest: float = 2.0, **settings: Any) -> Process:
        """An agent under a virtual clock, which goes on where the last one's stood, and a rest."""
        from_us, lasts_us = self._virtual_us, round(seconds * 1e6)
        self._virtual_us += lasts_us + round(rest * 1e6)
        process = Process(self._plan(paced_from_us=from_us, paced_us=lasts_us, **settings))
        self._running = [one for one in self._running if one.alive] + [process]
        return process

    def await_trouble(
        self, process: Process, text: str, after: int, enough: int = sys.maxsize
    ) -> None:
        """Wait until the log has a text, after so many characters, or it is seen to do without.

        Args:
            process: The newest life.
            text: What it says when it is in trouble.
            after: How much of the log is older.
            enough: So many scrapes are kept: what it needs is there all the same.

        Raises:
            DemoError: Neither is so within a minute or two, and it has not ended either.
        """
        self._await(
            lambda: text in process.log()[after:] or not process.alive or self._kept() >= enough,
            f"it says {text!r}",
        )

    def await_kept(self, scrapes: int) -> None:
        """Wait until the newest life has kept so many scrapes.

        Raises:
            DemoError: It did not within a minute or two.
        """
        self._await(lambda: self._kept() >= scrapes, f"{scrapes} scrapes are kept")

    def _kept(self) -> int:
        return len(testimony(self._witnesses[-1:])[0].kept)

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > until:
                raise DemoError(f"not so in time: {what}; {self._running[-1].log()[-500:]}")
            time.sleep(0.1)

    def lives(self) -> list[Life]:
        """What all lives so far were given."""
        return testimony(self._witnesses)

    def verdict(self, source: str = "broker-1", *, tail_lost: bool = False) -> Verdict:
        """Result of the check of the lake as it is; silence as if at the usual cadences."""
        told = read(str(self.lake), source)
        window_us = self._settings.get("window_us", LifePlan.window_us)
        verdict = judge(self.lives(), told, window_us, tail_lost=tail_lost)
        verdict.max_unaccounted_us //= self._settings.get("slow_down", LifePlan.slow_down)
        return verdict

    def _plan(self, **settings: Any) -> LifePlan:
        number = next(self._numbers)
        witness = self.folder / f"witness-{number:05}"
        self._witnesses.append(witness)
        log = self.folder / "agent.log"
        return replace(
            LifePlan(witness=witness, log=log, clock=self.clock, seed=self.seed, **self._settings),
            **settings,
        )
