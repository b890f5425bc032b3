"""The agent: scrapes on schedule, seals windows, delivers batches, and stops in order."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED

from collector import footprint
from collector.clock import StepDetector
from collector.complaints import Complaints
from collector.courier import Courier
from collector.errors import JmxlakeError, SpoolError, unexpected
from collector.moments import expand
from collector.plan import changes
from collector.samples import Series
from collector.schedule import Schedule
from collector.scraper import skipped
from collector.sd_notify import Service
from collector.sealed import Event
from collector.vitals import Vitals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from apscheduler.events import JobEvent

    from collector.clock import Clock
    from collector.delivery import Delivery
    from collector.plan import Plan, Task
    from collector.recorder import Recorder
    from collector.reload import Reload

_LOOKS_PER_WINDOW: Final = 60  # how often the keeper looks whether one is final
_KEEPER_INTERVAL_US: Final = 1_000_000  # at least
_LONGEST_LOOK_US: Final = 10_000_000
_BEAT_SECONDS: Final = 1.0


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
        vitals: Where the agent counts what it does.
        commit_phase_us: How much later than the interval's multiples it looks.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        recorder: Recorder,
        delivery: Delivery,
        commit_interval_us: int,
        clock: Clock,
        vitals: Vitals | None = None,
        *,
        commit_phase_us: int = 0,
    ) -> None:
        self.vitals = vitals or Vitals()
        self._tasks = {task.family.name: task for task in tasks}
        self._recorder = recorder
        self._clock = clock
        self._log = structlog.get_logger()
        self._complaints = Complaints()
        complain = partial(self._complaints.say, "delivery")
        self._courier = Courier(delivery, commit_interval_us, clock, self.vitals, complain)
        self._commit_phase_us = commit_phase_us
        self._steps, self._stepping = StepDetector(clock), threading.Lock()
        self._stepped = threading.Event()
        self._service = Service(self.vitals)

    def run(
        self,
        stop: threading.Event,
        reload: Reload | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Work until ``stop`` is set; then seal everything and try once more to deliver it.

        Args:
            stop: Ends the agent.
            reload: Asked about every second whether there is a new plan.
            about: What the first line of the log says of this agent.

        Raises:
            SpoolError: What is left could not be kept.
        """
        footprint.settle()
        self._expect()
        for found in self._recorder.found:
            self._log.warning(found.kind, old=found.old, new=found.new)
        self._guard("start", lambda: self._recorder.begin(self._clock.wall_us()))
        self._guard("start", partial(self._note, "agent_start"))
        self._catch_up(stop)
        schedule = self._schedule(stop)
        self._steps.check()
        schedule.scheduler.start()
        self._log.info("agent started", **(about or {}), families=sorted(self._tasks))
        self.vitals.begin()
        while not stop.wait(_BEAT_SECONDS):
            self.vitals.tick("main")
            self._check_clock()
            if self._stepped.is_set():
                self._stepped.clear()
                schedule.realign()
            if reload is not None and reload.wanted():
                self._reload(reload, schedule)
            self._service.beat()
        self._service.stopping()
        schedule.scheduler.shutdown(wait=True)
        self._check_clock()
        try:
            self._recorder.flush(self._clock.wall_us())
        finally:
            self._say_farewell()
            for scraper in {task.scraper for task in self._tasks.values()}:
                scraper.close()

    def _schedule(self, stop: threading.Event) -> Schedule:
        schedule = Schedule(["keeper", "lake"])
        for task in self._tasks.values():
            self._begin(task, schedule)
        deliver = partial(self._guard, "delivery", partial(self._courier.deliver, stop))
        look_us = max(self._recorder.window_us // _LOOKS_PER_WINDOW, _KEEPER_INTERVAL_US)
        schedule.every(min(look_us, _LONGEST_LOOK_US), "seal", "keeper", self._keep_windows)
        schedule.every(self._courier.interval_us, "deliver", "lake", deliver, self._commit_phase_us)
        schedule.scheduler.add_listener(self._missed, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        return schedule

    def _begin(self, task: Task, schedule: Schedule) -> None:
        work = partial(self._guard, task.family.name, partial(self._scrape, task))
        thread = f"source-{task.source}"
        schedule.every(task.interval_us, f"scrape {task.family.name}", thread, work)

    def _catch_up(self, stop: threading.Event) -> None:
        """Before anything is sealed: record what a log tells of the time without an agent."""
        for name, task in self._tasks.items():
            if task.family.via == "metadata_log":
                self._guard(name, partial(self._scrape, task, stop))

    def _scrape(self, task: Task, stop: threading.Event | None = None) -> None:
        """Read one family and keep what came; ``stop`` ends it after an answer."""
        more = True
        while more:
            scrape = task.scraper.attempt(task.family, task.interval_us)
            self._check_clock()
            self.vitals.scraped(scrape)
            self._recorder.record(*expand(scrape))
            self._complaints.say("spool", None)
            more = scrape.answer is not None and scrape.answer.more
            more = more and not (stop and stop.is_set())
        self.vitals.spool_writable = True
        self._complaints.say(task.family.name, scrape.error)

    def _keep_windows(self) -> None:
        """Move windows that are final into a batch."""
        self.vitals.tick("keeper")
        self._check_clock()
        self._guard("seal", lambda: self._recorder.seal(self._clock.wall_us()))

    def _guard(self, name: str, work: Callable[[], object]) -> None:
        """Run a job; what goes wrong is one line, once, and the job is tried at its next tick."""
        try:
            work()
        except SpoolError as error:
            self.vitals.spool_writable = False
            self._complaints.say("spool", str(error))  # once, whoever it is that fails
        except JmxlakeError as error:
            self._complaints.say(name, str(error))
        except Exception as error:  # noqa: BLE001 - a job that raises would print and be forgotten
            self._complaints.say(name, unexpected(error))
        else:
            if name not in self._tasks:  # a scrape that went wrong is no exception: see _scrape
                self._complaints.say(name, None)

    def _missed(self, event: JobEvent) -> None:
        task = self._tasks.get(event.job_id.removeprefix("scrape "))
        if task is not None:
            self.vitals.missed(task.family.name)
            now_us = self._clock.wall_us()
            scrape = skipped(task.family, task.interval_us, now_us - now_us % task.interval_us)
            self._guard(task.family.name, partial(self._recorder.record, scrape))

    def _check_clock(self) -> None:
        """Tell the recorder if the clock was set, before it is given an instant of the new one."""
        with self._stepping:
            step = self._steps.check()
            if step is None:
                return
            self.vitals.clock_stepped()
            self._log.warning("the clock was set", from_us=step.from_us, to_us=step.to_us)
            record = partial(self._recorder.step_clock, step.from_us, step.to_us)
            self._guard("clock", record)
            self._stepped.set()

    def _reload(self, reload: Reload, schedule: Schedule) -> None:
        """Take a new plan; one that is wrong is one line, and the old one stays in force."""
        self._service.reloading()
        try:
            plan = reload.plan()
        except Exception as error:  # noqa: BLE001 - whatever it is, the old plan works
            self.vitals.reloaded(well=False)
            reason = " ".join(str(error).split())
            self._log.error("reload refused, the old configuration stays", error=reason)
        else:
            before, old = self._tasks, self._recorder.catalogue
            self._adopt(plan, schedule)
            self.vitals.reloaded(well=True)
            changed: dict[str, object] = {**changes(before, self._tasks)}
            if old != plan.catalogue:
                changed["catalogue"] = [plan.catalogue]
            self._log.info("reloaded", **(changed or {"changed": "nothing that is read"}))
        self._service.reloaded()

    def _adopt(self, plan: Plan, schedule: Schedule) -> None:
        before, self._tasks = self._tasks, {task.family.name: task for task in plan.tasks}
        self._expect()
        old, new = self._recorder.catalogue, plan.catalogue
        self._recorder.reconfigure(plan.memory_us, new)
        if old != new:
            self._guard("reload", partial(self._note, "catalogue_change", old, new))
        for name in before.keys() - self._tasks.keys():
            schedule.cancel(f"scrape {name}")
        kept = {id(task.scraper) for task in self._tasks.values()}
        for task in {id(task.scraper): task for task in before.values()}.values():
            if id(task.scraper) not in kept:  # after what it is at now, and before its successor
                schedule.once(f"source-{task.source}", task.scraper.close)
        for name, task in self._tasks.items():
            if before.get(name) != task:
                self._begin(task, schedule)

    def _expect(self) -> None:
        families = self._tasks.items()
        self.vitals.expect({name: (task.source, task.interval_us) for name, task in families})

    def _note(self, kind: str, old: str | None = None, new: str | None = None) -> None:
        self._recorder.note(Event(self._clock.wall_us(), kind, Series(""), old, new))

    def _say_farewell(self) -> None:
        try:
            self._courier.farewell()
        except JmxlakeError as error:
            self._log.warning(
                "agent stopped; the rest waits in the spool for its next start", error=str(error)
            )
            return
        self._log.info("agent stopped")
