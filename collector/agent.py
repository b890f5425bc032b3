"""The agent: scrapes on schedule, seals windows, delivers batches, and stops in order."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED

from collector.catalogue import Family
from collector.clock import StepDetector
from collector.errors import JmxlakeError
from collector.runs import Event
from collector.samples import Series
from collector.schedule import Schedule
from collector.scraper import Scraper, skipped

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from apscheduler.events import JobEvent

    from collector.clock import Clock
    from collector.delivery import Delivery
    from collector.recorder import Recorder

_KEEPER_INTERVAL_US: Final = 1_000_000
_CLOCK_SECONDS: Final = 1.0
_BACKOFF_LIMIT: Final = 64  # commit intervals: about ten minutes at ten seconds
_FAREWELL_US: Final = 30_000_000


class Task(NamedTuple):
    """A family that is read from one source at one cadence."""

    family: Family
    interval_us: int
    scraper: Scraper


class Agent:
    """Runs until it is told to stop.

    Each source has a thread of its own, so that a hung broker delays nobody else; one thread keeps
    the windows, one delivers, and the one that called ``run`` watches the clock.

    Args:
        tasks: What is read.
        recorder: Where it is kept.
        delivery: How it gets into the lake.
        commit_interval_us: How often delivery looks for batches.
        clock: Gives the instants.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        recorder: Recorder,
        delivery: Delivery,
        commit_interval_us: int,
        clock: Clock,
    ) -> None:
        self._tasks = {task.family.name: task for task in tasks}
        self._recorder, self._delivery = recorder, delivery
        self._commit_interval_us = commit_interval_us
        self._clock = clock
        self._log = structlog.get_logger()
        self._failures = 0
        self._not_before_us = 0
        self._said: dict[str, str | None] = {}

    def run(self, stop: threading.Event) -> None:
        """Work until ``stop`` is set; then seal everything and try once more to deliver it.

        Raises:
            SpoolError: What is left could not be kept.
        """
        self._recorder.begin(self._clock.wall_us())
        self._recorder.note(Event(self._clock.wall_us(), "agent_start", Series("")))
        schedule = self._schedule(stop)
        schedule.scheduler.start()
        self._log.info("agent started", families=sorted(self._tasks))
        self._watch_clock(stop, schedule)
        schedule.scheduler.shutdown(wait=True)
        self._recorder.flush(self._clock.wall_us())
        self._say_farewell()
        for scraper in {task.scraper for task in self._tasks.values()}:
            scraper.close()

    def _schedule(self, stop: threading.Event) -> Schedule:
        scrapers = list({id(task.scraper): task.scraper for task in self._tasks.values()}.values())
        thread = {id(scraper): f"source-{index}" for index, scraper in enumerate(scrapers)}
        schedule = Schedule([*thread.values(), "keeper", "lake"])
        for name, task in self._tasks.items():
            work = partial(self._guard, name, partial(self._scrape, task))
            schedule.every(task.interval_us, f"scrape {name}", thread[id(task.scraper)], work)
        seal = partial(self._guard, "seal", self._seal)
        deliver = partial(self._guard, "delivery", partial(self._deliver, stop))
        schedule.every(_KEEPER_INTERVAL_US, "seal", "keeper", seal)
        schedule.every(self._commit_interval_us, "deliver", "lake", deliver)
        schedule.scheduler.add_listener(self._missed, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        return schedule

    def _scrape(self, task: Task) -> None:
        """Read one family and keep what came."""
        scrape = task.scraper.attempt(task.family, task.interval_us)
        self._recorder.record(scrape)
        self._say(task.family.name, scrape.error)

    def _seal(self) -> None:
        """Move windows that are final into a batch."""
        self._recorder.seal(self._clock.wall_us())

    def _deliver(self, stop: threading.Event) -> None:
        """Deliver what waits; after a failure wait longer and longer, with jitter."""
        if self._clock.steady_us() < self._not_before_us:
            return
        self._failures += 1
        wait = min(2**self._failures, _BACKOFF_LIMIT) * self._commit_interval_us
        jitter = random.uniform(0.5, 1)  # noqa: S311 - only to spread agents over time
        self._not_before_us = self._clock.steady_us() + round(wait * jitter)
        while not stop.is_set() and self._delivery.deliver_next():
            pass
        self._failures = self._not_before_us = 0

    def _guard(self, name: str, work: Callable[[], None]) -> None:
        """Run a job; what goes wrong is one line, once, and the job is tried at its next tick."""
        try:
            work()
        except JmxlakeError as error:
            self._say(name, str(error))
        except Exception as error:  # noqa: BLE001 - a job that raises would print and be forgotten
            self._say(name, f"unexpected {type(error).__name__}: {error}")
        else:
            if name not in self._tasks:  # a scrape that went wrong is no exception: see _scrape
                self._say(name, None)

    def _say(self, name: str, error: str | None) -> None:
        if self._said.get(name) != error:
            self._said[name] = error
            if error is None:
                self._log.info("works again", what=name)
            else:
                self._log.warning("failed", what=name, error=" ".join(error.split()))

    def _missed(self, event: JobEvent) -> None:
        task = self._tasks.get(event.job_id.removeprefix("scrape "))
        if task is not None:
            now_us = self._clock.wall_us()
            scrape = skipped(task.family, task.interval_us, now_us - now_us % task.interval_us)
            self._guard(task.family.name, partial(self._recorder.record, scrape))

    def _watch_clock(self, stop: threading.Event, schedule: Schedule) -> None:
        steps = StepDetector(self._clock)
        while not stop.wait(_CLOCK_SECONDS):
            step = steps.check()
            if step is not None:
                self._log.warning("the clock was set", from_us=step.from_us, to_us=step.to_us)
                record = partial(self._recorder.step_clock, step.from_us, step.to_us)
                self._guard("clock", record)
                schedule.realign()

    def _say_farewell(self) -> None:
        until_us = self._clock.steady_us() + _FAREWELL_US
        try:
            while self._clock.steady_us() < until_us and self._delivery.deliver_next():
                pass
        except JmxlakeError as error:
            self._log.warning(
                "agent stopped; the rest waits in the spool for its next start", error=str(error)
            )
            return
        self._log.info("agent stopped")
