"""The agent: scrapes on schedule, seals windows, delivers batches, and stops in order."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Final

from collector import footprint, logs
from collector.clock import StepDetector
from collector.coarsening import Limiter
from collector.complaints import Complaints
from collector.courier import Courier
from collector.errors import UNEXPECTED, JmxlakeError, SpoolError, unexpected
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
    from concurrent.futures import Future

    from collector.clock import Clock
    from collector.coarsening import Bounds
    from collector.courier import Deliverer
    from collector.crashes import Crash
    from collector.plan import Plan, Task
    from collector.recorder import Recorder
    from collector.reload import Reload

_LOOKS_PER_WINDOW: Final = 60  # how often the keeper looks whether one is final
_KEEPER_INTERVAL_US: Final = 1_000_000  # at least
_LONGEST_LOOK_US: Final = 10_000_000
_BEAT_SECONDS: Final = 1.0
_IN_EVENT: Final = ("version", "config", "catalogue")
_FAREWELL_SECONDS: Final = 35.0  # the courier's half minute, and a commit that was under way
_GOODBYE_SECONDS: Final = 1.0


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
        commit_phase_us: How much later than the interval's multiples it looks.
        bounds: From where on the largest family is read less often; None: nowhere.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        recorder: Recorder,
        delivery: Deliverer,
        commit_interval_us: int,
        clock: Clock,
        *,
        commit_phase_us: int = 0,
        bounds: Bounds | None = None,
    ) -> None:
        self.vitals = Vitals()
        self._limiter = Limiter(bounds, recorder.window_us)
        self._planned = {task.family.name: task for task in tasks}
        self._tasks = self._planned
        self._recorder = recorder
        self._clock = clock
        self._complaints = Complaints()
        complain = partial(self._complaints.say, "delivery")
        self._courier = Courier(delivery, commit_interval_us, clock, self.vitals, complain)
        self._commit_phase_us = commit_phase_us
        self._steps, self._stepping = StepDetector(clock), threading.Lock()
        self._stepped = threading.Event()
        self._service = Service(self.vitals)
        self._sealed = threading.Event()
        self.vitals.commit_interval_seconds = commit_interval_us / 1e6

    def run(
        self,
        stop: threading.Event,
        reload: Reload | None = None,
        about: Mapping[str, str] | None = None,
        crashes: Sequence[Crash] = (),
    ) -> None:
        """Work until ``stop`` is set; then seal everything and try once more to deliver it.

        Args:
            stop: Ends the agent.
            reload: Asked about every second whether there is a new plan.
            about: What the first line of the log says of this agent; of it the event of its start
                has ``version``, ``config`` and ``catalogue``.
            crashes: How agents before it ended, as far as no event says so yet.

        Raises:
            SpoolError: What is left could not be kept.
        """
        footprint.settle()
        self._expect()
        for found in self._recorder.found:
            logs.warning(found.kind, old=found.old, new=found.new)
        self._guard("start", lambda: self._recorder.begin(self._clock.wall_us()))
        for crash in crashes:
            self._guard("start", partial(self._note_crash, crash))
        named = [f"{key}={value}" for key, value in (about or {}).items() if key in _IN_EVENT]
        self._guard("start", partial(self._note, "agent_start", new=" ".join(named) or None))
        self._catch_up(stop)
        schedule = self._schedule(stop)
        self._steps.check()
        schedule.scheduler.start()
        logs.info("agent started", **(about or {}), families=sorted(self._tasks))
        self.vitals.begin()
        while not stop.wait(_BEAT_SECONDS):
            self.vitals.tick("main")
            self._check_clock()
            if self._stepped.is_set():
                self._stepped.clear()
                schedule.realign()
            if reload is not None and reload.wanted():
                self._reload(reload, schedule)
            self._heed_limits(schedule)
            self._service.beat()
        self._finish(schedule)

    def _finish(self, schedule: Schedule) -> None:
        """Seal first, then deliver; a source that hangs is left behind."""
        self._service.stopping()
        schedule.scheduler.pause()
        self._sealed.set()
        self._check_clock()
        try:
            self._recorder.flush(self._clock.wall_us())
        finally:
            used = {id(task.scraper): task for task in self._tasks.values()}.values()
            closed = [_close(task, schedule) for task in used]
            self._say_farewell(schedule)
            wait(closed, _GOODBYE_SECONDS)
            schedule.stop()

    def _schedule(self, stop: threading.Event) -> Schedule:
        schedule = Schedule(self._missed)
        for task in self._tasks.values():
            self._begin(task, schedule)
        deliver = partial(self._guard, "delivery", partial(self._deliver, stop))
        look_us = max(self._recorder.window_us // _LOOKS_PER_WINDOW, _KEEPER_INTERVAL_US)
        schedule.every(min(look_us, _LONGEST_LOOK_US), "seal", "keeper", self._keep_windows)
        schedule.every(self._courier.interval_us, "deliver", "lake", deliver, self._commit_phase_us)
        return schedule

    def _begin(self, task: Task, schedule: Schedule) -> None:
        work = partial(self._guard, task.family.name, partial(self._scrape, task))
        schedule.every(task.interval_us, f"scrape {task.family.name}", _thread(task), work)

    def _catch_up(self, stop: threading.Event) -> None:
        """Before anything is sealed: record what a log tells of the time without an agent."""
        for name, task in self._tasks.items():
            if task.family.via == "metadata_log":
                self._guard(name, partial(self._scrape, task, stop))

    def _scrape(self, task: Task, stop: threading.Event | None = None) -> None:
        """Read one family and keep what came; ``stop`` ends it after an answer."""
        more = True
        while more:
            if self._sealed.is_set():
                return
            scrape = task.scraper.attempt(task.family, task.interval_us)
            if self._sealed.is_set():
                return  # it was in flight as the agent stopped
            self._check_clock()
            self.vitals.scraped(scrape)
            if scrape.error is not None and scrape.error.startswith(UNEXPECTED):
                self.vitals.met_unexpected()
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
        self._guard("seal", self._seal)

    def _seal(self) -> None:
        began_us = self._clock.steady_us()
        if self._recorder.seal(self._clock.wall_us()):
            self.vitals.seal_seconds = (self._clock.steady_us() - began_us) / 1e6

    def _deliver(self, stop: threading.Event) -> None:
        began_us = self._clock.steady_us()
        self._courier.deliver(stop)
        self.vitals.delivery_seconds = (self._clock.steady_us() - began_us) / 1e6

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
            self.vitals.met_unexpected()
            logs.trace(error)
            self._complaints.say(name, unexpected(error))
        else:
            if name not in self._tasks:  # a scrape that went wrong is no exception: see _scrape
                self._complaints.say(name, None)

    def _missed(self, job: str) -> None:
        task = self._tasks.get(job.removeprefix("scrape "))
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
            logs.warning("the clock was set", from_us=step.from_us, to_us=step.to_us)
            record = partial(self._recorder.step_clock, step.from_us, step.to_us)
            self._guard("clock", record)
            self._stepped.set()

    def _reload(self, reload: Reload, schedule: Schedule) -> None:
        """Take a new plan; one that is wrong is one line, and the old one stays in force."""
        self._service.reloading()
        before, old = self._tasks, self._recorder.catalogue
        try:
            plan = reload.plan()
            self._adopt(plan, schedule)
        except Exception as error:  # noqa: BLE001 - whatever it is, the old plan works
            self.vitals.reloaded(well=False)
            logs.trace(error)
            reason = str(error) if isinstance(error, JmxlakeError) else unexpected(error)
            reason = " ".join(reason.split())
            logs.error("reload refused, the old configuration stays", error=reason)
        else:
            self.vitals.reloaded(well=True)
            changed: dict[str, object] = {**changes(before, self._tasks)}
            if old != plan.catalogue:
                changed["catalogue"] = [plan.catalogue]
            logs.info("reloaded", **(changed or {"changed": "nothing that is read"}))
        self._service.reloaded()

    def _adopt(self, plan: Plan, schedule: Schedule) -> None:
        old, new = self._recorder.catalogue, plan.catalogue
        self._recorder.reconfigure(plan.memory_us, new)  # first: where it fails, nothing changes
        if old != new:
            self._guard("reload", partial(self._note, "catalogue_change", old, new))
        self._planned = {task.family.name: task for task in plan.tasks}
        self._read(schedule)

    def _read(self, schedule: Schedule) -> None:
        """Read what is planned, as often as the limits allow; what stays as it was is let be."""
        before, factors = self._tasks, self._limiter.factors(self._planned)
        self._tasks = {
            name: task._replace(interval_us=task.interval_us * factors[name])
            for name, task in self._planned.items()
            if factors[name]
        }
        self._expect()
        for name in before.keys() - self._tasks.keys():
            schedule.cancel(f"scrape {name}")
        kept = {id(task.scraper) for task in self._tasks.values()}
        for task in {id(task.scraper): task for task in before.values()}.values():
            if id(task.scraper) not in kept:  # after what it is at now, and before its successor
                _close(task, schedule)
        for name, task in self._tasks.items():
            if before.get(name) != task:
                self._begin(task, schedule)

    def _heed_limits(self, schedule: Schedule) -> None:
        """Read the largest family less often, if the window that was sealed last took too much."""
        now_us = self._clock.wall_us()
        change = self._limiter.weigh(self._planned, self._recorder.last_window, now_us)
        self.vitals.window_rows = self._limiter.rows
        if change is not None:
            old, new = change.said(self._planned[change.family].interval_us)
            logs.warning(change.kind, old=old, new=new)
            self._guard("limits", partial(self._note, change.kind, old, new))
            self._read(schedule)

    def _expect(self) -> None:
        self.vitals.factors = self._limiter.factors(self._planned)
        families = self._tasks.items()
        self.vitals.expect({name: (task.source, task.interval_us) for name, task in families})

    def _note(self, kind: str, old: str | None = None, new: str | None = None) -> None:
        self._recorder.note(Event(self._clock.wall_us(), kind, Series(""), old, new))

    def _note_crash(self, crash: Crash) -> None:
        text = f"{crash.path.name}: {crash.cause}"
        logs.warning("agent_crashed", report=str(crash.path), cause=crash.cause)
        self._recorder.note(Event(crash.at_us, "agent_crashed", Series(""), None, text))
        crash.seen()

    def _say_farewell(self, schedule: Schedule) -> None:
        try:
            schedule.once("lake", self._courier.farewell).result(_FAREWELL_SECONDS)
        except (JmxlakeError, TimeoutError) as error:
            why = str(error) or "a delivery is still under way"
            logs.warning("agent stopped; the rest waits in the spool for its next start", error=why)
            return
        logs.info("agent stopped")


def _thread(task: Task) -> str:
    return f"source-{task.source}"


def _close(task: Task, schedule: Schedule) -> Future[None]:
    return schedule.once(_thread(task), task.scraper.close)
