"""A day of an agent with faults at random instants, a hundred times faster than by the clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Final

from tests.rig.clocks import SteppableClock
from tests.rig.s3 import rules
from tests.rig.s3.rules import COMMITS, DATA
from tests.rig.stage import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.rig.rig import Process
    from tests.rig.stage import Stage

SECONDS: Final = 864.0  # a day, with cadences of 100 to 250 ms in place of 10 to 25 s
_HASTE: Final = 100
_WINDOW_US: Final = 3_000_000  # five minutes
_FIRST_SECONDS: Final = 20.0  # of a life, in which memory may still grow
_LONG_SECONDS: Final = 100
_PAUSES: Final = (4.0, 10.0)  # between two faults
_SETTLED: Final = 60  # scrapes


@dataclass
class Day:
    """What a day came to.

    Attributes:
        outcome: Result of the check of its lake.
        faults: How often each fault was staged.
        memory_mb: The agent's resident memory each second, and the part of it that is of no file,
            for each of its lives from its twentieth second on.
    """

    outcome: Outcome = field(default_factory=Outcome)
    faults: dict[str, int] = field(default_factory=dict)
    memory_mb: list[list[tuple[float, float]]] = field(default_factory=list)

    def growth_mb(self) -> tuple[float, float]:
        """By how much more a life of two minutes or longer took in its second half than in its
        first, at most: medians, since pages of libraries come with each delivery and go after it.
        """
        grown = [(0.0, 0.0)]
        for life in self.memory_mb:
            half = len(life) // 2
            if len(life) >= _LONG_SECONDS:
                first, later = ([*zip(*part, strict=True)] for part in (life[:half], life[half:]))
                resident, own = (median(b) - median(a) for a, b in zip(first, later, strict=True))
                grown.append((resident, own))
        return max(one[0] for one in grown), max(one[1] for one in grown)


class _Stand:
    """The agent, its store, and what is done to them."""

    def __init__(self, stage: Stage, day: Day) -> None:
        self._dice, self._day = stage.dice, day
        server, self._proxy = stage.s3()
        settings = {"window_us": _WINDOW_US, "commit_us": _WINDOW_US, "haste": _HASTE}
        self.rig = stage.s3_rig(server, self._proxy, "day", **settings)
        self.process = self._begun()
        self.rig.await_kept(1)
        self.maintenance = stage.maintain(server, "day")

    def wait(self, seconds: float) -> None:
        """Let time pass, and look at the agent's memory meanwhile."""
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            if now - self._began > _FIRST_SECONDS:
                self._day.memory_mb[-1].append(self.process.memory_mb())
            time.sleep(min(1.0, until - now))

    def refuse(self) -> None:
        """The store does not do what it is asked, or does it and does not say so."""
        answers: tuple[Callable[..., rules.Rule], ...] = (
            lambda **which: rules.refused(self._dice.choice((409, 412, 500, 503)), **which),
            lambda **which: rules.landed_but(500, **which),
            rules.answer_lost,
            rules.answer_hangs,
        )
        which = {"key": self._dice.choice((COMMITS, DATA)), "nth": self._dice.randint(1, 4)}
        lift = self._proxy.plan(self._dice.choice(answers)(**which, times=self._dice.randint(1, 4)))
        self.wait(self._dice.uniform(3, 9))
        lift()

    def cut_off(self) -> None:
        """The store is not reached, for up to an hour of the day."""
        lift = self._proxy.plan(rules.down())
        self.wait(self._dice.uniform(5, 36))
        lift()

    def pause(self) -> None:
        """The agent gets no processor, as on a host that is suspended."""
        self.process.pause(self._dice.uniform(0.5, 5))

    def set_clock(self) -> None:
        """The host's clock is wrong by minutes for a while."""
        SteppableClock.set(self.rig.clock, round(self._dice.uniform(-5e6, 20e6)))
        self.wait(self._dice.uniform(3, 8))
        SteppableClock.set(self.rig.clock, 0)

    def kill(self) -> None:
        """SIGKILL, now and then while it starts once more."""
        self.process.kill()
        if self._dice.random() < 0.3:
            self.process = self.rig.start()
            time.sleep(self._dice.uniform(0, 0.5))
            self.process.kill()
            self._day.outcome.kills += 1
        self._day.outcome.kills += 1
        self.process = self._begun()

    def restart(self) -> None:
        """An upgrade: it stops in order, if it has begun: until then SIGTERM just ends it."""
        self.rig.await_kept(1)
        ended = self.process.stop()
        self._day.outcome.expect(ended == 0, f"it ended with {ended}: {self.process.log()[-500:]}")
        self.process = self._begun()

    def _begun(self) -> Process:
        self._began = time.monotonic()
        self._day.memory_mb.append([])
        return self.rig.start()


def a_day(stage: Stage, seconds: float = SECONDS) -> Day:
    """Read for so long, with a fault every few seconds; then stop in order, and check."""
    day = Day()
    stand, until = _Stand(stage, day), time.monotonic() + seconds
    often = (stand.refuse, stand.refuse, stand.cut_off, stand.pause, stand.set_clock)
    seldom = (stand.kill, stand.restart)  # memory is to have time to grow
    while time.monotonic() < until:
        stand.wait(stage.dice.uniform(*_PAUSES))
        fault = stage.dice.choice(seldom if stage.dice.random() < 0.1 else often)
        fault()
        day.faults[fault.__name__] = day.faults.get(fault.__name__, 0) + 1
        day.outcome.expect(stand.process.alive, f"it ended: {stand.process.log()[-500:]}")
        day.outcome.expect(stand.maintenance.poll() is None, "maintenance ended")
    stand.rig.await_kept(_SETTLED)
    day.outcome.expect(stand.process.stop() == 0, f"no end: {stand.process.log()[-500:]}")
    day.outcome.ask(stand.rig)
    return day
