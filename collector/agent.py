"""The agent: scrapes on schedule, seals windows, delivers batches, and stops in order."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from collector.catalogue import Family
from collector.clock import StepDetector
from collector.errors import LakeError, SpoolError
from collector.runs import Event
from collector.samples import Series
from collector.scraper import Scraper, skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from apscheduler.events import JobEvent

    from collector.clock import Clock
    from collector.delivery import Delivery
    from collector.recorder import Recorder

_KEEPER_INTERVAL_US: Final = 1_000_000
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
    the windows, one delivers.

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
        self._steps = StepDetector(clock)
        self._steps_lock = threading.Lock()
        self._log = structlog.get_logger()
        self._failures = 0
        self._not_before_us = 0
        self._outcomes: dict[str, str] = {}

    def run(self, stop: threading.Event) -> None:
        """Work until ``stop`` is set; then seal everything and try once more to deliver it."""
        scheduler = self._schedule()
        self._recorder.note(Event(self._clock.wall_us(), "agent_start", Series("")))
        scheduler.start()
        self._log.info("agent started", families=sorted(self._tasks))
        stop.wait()
        scheduler.shutdown(wait=True)
        self._recorder.flush(self._clock.wall_us())
        self._say_farewell()
        for scraper in {task.scraper for task in self._tasks.values()}:
            scraper.close()

    def scrape(self, name: str) -> None:
        """Read one family and keep what came."""
        self._check_clock()
        task = self._tasks[name]
        scrape = task.scraper.attempt(task.family, task.interval_us)
        self._recorder.record(scrape)
        if scrape.outcome != self._outcomes.get(name, "ok"):
            say = self._log.info if scrape.outcome == "ok" else self._log.warning
            say("scrape", family=name, outcome=scrape.outcome, error=scrape.error)
        self._outcomes[name] = scrape.outcome

    def seal(self) -> None:
        """Move windows that are final into a batch."""
        self._check_clock()
        self._recorder.seal(self._clock.wall_us())

    def deliver(self) -> None:
        """Deliver what waits; after a failure wait longer and longer, with jitter."""
        if self._clock.steady_us() < self._not_before_us:
            return
        try:
            while self._delivery.deliver_next():
                pass
        except (LakeError, SpoolError) as error:
            self._failures += 1
            wait = min(2**self._failures, _BACKOFF_LIMIT) * self._commit_interval_us
            self._not_before_us = self._clock.steady_us() + round(wait * random.uniform(0.5, 1))  # noqa: S311 - jitter
            self._log.warning("delivery", error=str(error), failures=self._failures)
            return
        if self._failures:
            self._log.info("delivery works again", failures=self._failures)
        self._failures = 0

    def _schedule(self) -> BackgroundScheduler:
        scrapers = list({id(task.scraper): task.scraper for task in self._tasks.values()}.values())
        names = {id(scraper): f"source-{index}" for index, scraper in enumerate(scrapers)}
        executors = {name: ThreadPoolExecutor(1) for name in (*names.values(), "keeper", "lake")}
        scheduler = BackgroundScheduler(
            executors=executors,
            timezone=UTC,
            job_defaults={"coalesce": True, "max_instances": 1},
        )
        for name, task in self._tasks.items():
            self._every(scheduler, task.interval_us, self.scrape, names[id(task.scraper)], name)
        self._every(scheduler, _KEEPER_INTERVAL_US, self.seal, "keeper")
        self._every(scheduler, self._commit_interval_us, self.deliver, "lake")
        scheduler.add_listener(self._missed, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        return scheduler

    def _every(
        self,
        scheduler: BackgroundScheduler,
        interval_us: int,
        work: Callable[..., None],
        executor: str,
        *args: Any,
    ) -> None:
        now_us = self._clock.wall_us()
        first_us = now_us - now_us % interval_us + interval_us  # ticks are aligned to the epoch
        trigger = IntervalTrigger(
            seconds=interval_us / 1e6,
            start_date=datetime.fromtimestamp(0, UTC) + timedelta(microseconds=first_us),
            timezone=UTC,
        )
        scheduler.add_job(
            work,
            trigger,
            args=args,
            id=args[0] if args else work.__name__,
            executor=executor,
            misfire_grace_time=max(1, interval_us // 1_000_000),
            next_run_time=datetime.now(UTC),
        )

    def _missed(self, event: JobEvent) -> None:
        task = self._tasks.get(event.job_id)
        if task is None:
            return
        late_us = self._clock.wall_us()
        tick_us = late_us - late_us % task.interval_us
        self._recorder.record(skipped(task.family, task.interval_us, tick_us))

    def _check_clock(self) -> None:
        with self._steps_lock:
            step = self._steps.check()
        if step is not None:
            self._log.warning("the wall clock was set", from_us=step.from_us, to_us=step.to_us)
            self._recorder.step_clock(step.from_us, step.to_us)

    def _say_farewell(self) -> None:
        until_us = self._clock.steady_us() + _FAREWELL_US
        try:
            while self._clock.steady_us() < until_us and self._delivery.deliver_next():
                pass
        except (LakeError, SpoolError) as error:
            self._log.warning(
                "agent stopped; the rest waits in the spool for its next start", error=str(error)
            )
            return
        self._log.info("agent stopped")
