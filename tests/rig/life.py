"""One life of an agent, in a process of its own: live by the clock, or paced without waiting.

Live is the real agent with its threads and its schedule. Paced does the same work in one thread
under a virtual clock: five minutes in a fraction of a second, and the same at every repetition.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.agent.agent import Agent
from collector.agent.plan import Task
from collector.agent.scrape_attempt import Scraper
from collector.delivery.delivery import Delivery
from collector.errors import JmxlakeError, LakeError
from collector.model import Event, Series
from collector.spool.source_states import Scope
from collector.spool.spool import Spool
from collector.telemetry import logs, memory
from tests.rig import fake_beans
from tests.rig.clocks import SteppableClock, VirtualClock
from tests.rig.fake_beans import FakeBeans
from tests.rig.tripwires import Step, Tripwires
from tests.rig.witness import Began, Ended, Witness, WitnessedRecorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.model import Clock


WINDOW_US: Final = 1_000_000
_BEAT_US: Final = 50_000
_FAREWELL_ATTEMPTS: Final = 20
MIB: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class LifePlan:
    """What an agent is to do; it can be pickled.

    Attributes:
        spool: Its spool.
        lake: Root of the lake.
        witness: The file of what it was given.
        log: Its log.
        clock: Of a live agent: how far its clock is off.
        options: Storage options of delta-rs.
        source: Its name in the lake.
        seed: Of what the beans say.
        spool_bytes: Size beyond which the spool drops the oldest batch.
        commit_us: How often it delivers.
        step: Where it kills itself.
        survey: Where it writes which steps it passed.
        paced_from_us: Of a paced agent: the virtual instant at which it begins; 0: it is live.
        paced_us: Of a paced agent: how long it lives.
        orderly: Of a paced agent: whether it seals and delivers everything at the end.
        slow_down: How many times slower than usual everything is read.
        haste: How many times faster the delivery's steady clock goes: tables are held for an hour.
        window_us: Length of a window.
        wide: How many more partitions its broker has, which change all the time.
    """

    spool: Path
    lake: str
    witness: Path
    log: Path
    clock: Path
    options: dict[str, str] = field(default_factory=dict)
    source: str = "broker-1"
    seed: int = 1
    spool_bytes: int = 64 * MIB
    commit_us: int = 300_000
    step: Step | None = None
    survey: Path | None = None
    paced_from_us: int = 0
    paced_us: int = 0
    orderly: bool = True
    slow_down: int = 1
    haste: int = 1
    window_us: int = WINDOW_US
    wide: int = 0


def live(plan: LifePlan) -> None:
    """Live it; ends with SIGTERM in order, and with exit code 3 where an error ended it."""
    memory.configure_malloc()  # as ``jmxlake-agent run`` does
    with plan.log.open("ab", buffering=0) as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    logs.configure(as_json=False)
    if plan.step is not None or plan.survey is not None:
        Tripwires(plan.step, plan.survey).install()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    try:
        with ExitStack() as things:
            if plan.paced_from_us:
                _Paced(plan, things).live()
            else:
                _live_by_the_clock(plan, things, stop)
    except JmxlakeError as error:
        logs.error("agent_failed", error=str(error))
        # Threads of the schedule may still run, as after any crash.
        os._exit(3)


class _Parts:
    """A real agent's parts over a fake broker."""

    def __init__(
        self, plan: LifePlan, things: ExitStack, clock: Clock, now_us: Callable[[], int]
    ) -> None:
        self.witness = Witness(plan.witness)
        self.spool = things.enter_context(Spool(plan.spool, plan.spool_bytes, clock))
        self.recorder = WitnessedRecorder(
            self.spool, Scope({plan.source: None}, fake_beans.DELAYS, "fake"), plan.window_us
        )
        self.recorder.witness = self.witness
        told = {name: self.recorder.recorded_until_us(name) for name in fake_beans.FAMILIES}
        self.witness.write(Began(clock.wall_us(), told))
        self.delivery = Delivery(
            plan.lake,
            lambda: plan.options,
            self.spool,
            self.recorder,
            monotonic=lambda: time.monotonic() * plan.haste,
        )
        sources = {via: FakeBeans(plan.seed, now_us, plan.wide) for via in ("jmx", "admin")}
        scrapers = {
            via: Scraper(source, clock, name=plan.source) for via, source in sources.items()
        }
        self.tasks = [
            Task(family, cadence_us * plan.slow_down, scrapers[via], via)
            for family, cadence_us, via in (
                (fake_beans.FAMILIES[name], fake_beans.CADENCE_US[name], fake_beans.SOURCE_OF[name])
                for name in fake_beans.FAMILIES
            )
        ]


def _live_by_the_clock(plan: LifePlan, things: ExitStack, stop: threading.Event) -> None:
    clock = SteppableClock(plan.clock)
    parts = _Parts(plan, things, clock, lambda: time.time_ns() // 1_000)
    agent = Agent(parts.tasks, parts.recorder, parts.delivery.deliver_next, plan.commit_us, clock)
    agent.run(stop)
    parts.witness.write(Ended(clock.wall_us()))


class _Paced:
    """The agent's work in one thread, beat by beat."""

    def __init__(self, plan: LifePlan, things: ExitStack) -> None:
        self._plan = plan
        self._clock = VirtualClock(plan.paced_from_us)
        self._parts = _Parts(plan, things, self._clock, self._clock.steady_us)

    def live(self) -> None:
        plan, clock, parts = self._plan, self._clock, self._parts
        self._try(lambda: parts.recorder.begin(clock.wall_us()))
        start = Event(clock.wall_us(), "agent_start", Series(""))
        self._try(lambda: parts.recorder.note(start))
        beat_us = _BEAT_US * plan.slow_down
        first_us = plan.paced_from_us + beat_us
        for at_us in range(first_us, first_us + plan.paced_us, beat_us):
            clock.go_on(at_us)
            for task in parts.tasks:
                if at_us % task.interval_us < beat_us:
                    scrape = task.scraper.attempt(task.family, task.interval_us)
                    self._try(partial(parts.recorder.record, scrape))
            if at_us % plan.window_us < beat_us:
                self._try(lambda: parts.recorder.seal(clock.wall_us()))
            if at_us % (plan.commit_us * plan.slow_down) < beat_us:
                self._try(self._deliver)
        if plan.orderly:
            self._part()
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        logs.info("ended", peak_mb=peak_mb)

    def _part(self) -> None:
        now_us = self._clock.wall_us()
        self._parts.recorder.flush(now_us)
        self._parts.witness.write(Ended(now_us))
        for attempt in range(_FAREWELL_ATTEMPTS):
            try:
                return self._deliver()
            except LakeError:
                if attempt == _FAREWELL_ATTEMPTS - 1:
                    raise
        return None

    def _deliver(self) -> None:
        while self._parts.delivery.deliver_next():
            pass

    def _try(self, work: Callable[[], object]) -> None:
        """As the agent guards its jobs: what goes wrong is said, and tried again at its time."""
        try:
            work()
        except JmxlakeError as error:
            logs.warning("went wrong", error=str(error))
