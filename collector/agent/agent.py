"""The agent: scrapes on schedule, seals windows, delivers batches, and stops in order."""

import gc
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import partial
from types import MappingProxyType
from typing import Final

from collector.agent.plan import Plan, Task, changes
from collector.agent.reload import LOOK_US, Reload
from collector.agent.schedule import DeliveryWorker, Limiter, Schedule, StepDetector
from collector.agent.scrape_attempt import skipped
from collector.config.schema import Limits
from collector.errors import JmxlakeError, SpoolError
from collector.model import Clock, Event, Read, Series, expand
from collector.sources.java.jvm import Crash
from collector.spool.recorder import Recorder
from collector.telemetry import logs, memory
from collector.telemetry.agent_stats import AgentStats
from collector.telemetry.health import BEAT_SECONDS, Service
from collector.telemetry.live_metrics import Live
from lakehouse.tables.error_text import UNEXPECTED, unexpected

_IN_EVENT: Final = ("version", "config", "catalogue")
_DRAIN_SECONDS: Final = 35.0  # half a minute of delivery, and a running commit
_CLOSE_SECONDS: Final = 1.0
_COLLECT_US: Final = 60_000_000
_OWNERS_US: Final = 300_000_000


class Agent:
    """Runs until it is stopped.

    Each transport of each source has its own thread, so that a hung broker does not delay others.
    One thread closes windows, one thread delivers, and the thread that called ``run`` watches the
    clock.

    Args:
        tasks: Families to scrape.
        recorder: Storage of scrapes.
        deliver_next: Delivers the oldest batches and returns their number. 0 if there are none.
        commit_interval_us: Interval of deliveries.
        clock: Clock of all instants.
        commit_phase_us: Delay of deliveries after the multiples of the interval.
        limits: Limits above which the largest family is scraped less often. None: no limits.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        recorder: Recorder,
        deliver_next: Callable[[], int],
        commit_interval_us: int,
        clock: Clock,
        *,
        commit_phase_us: int = 0,
        limits: Limits | None = None,
    ) -> None:
        self.stats, self.live = AgentStats(), Live(recorder.lost)
        self._limiter = Limiter(limits, recorder.window_us)
        self._planned = {task.read: task for task in tasks}
        self._tasks: dict[Read, Task] = {}
        self._schedule = Schedule(self._missed)
        self._recorder, self._clock = recorder, clock
        self._named: str | None = None
        self._failures, self._outages = logs.DedupLog(), logs.OutageLog(clock)
        report_failure = partial(self._failures.report, "delivery")
        self._worker = DeliveryWorker(deliver_next, clock, self.stats, report_failure)
        self._commit_us = commit_interval_us, commit_phase_us
        self._steps, self._stepping = StepDetector(clock), threading.Lock()
        self._stepped, self._sealed = threading.Event(), threading.Event()
        self._collected_us = clock.steady_us()
        self._service = Service(self.stats)
        self.stats.commit_interval_seconds = commit_interval_us / 1e6

    def run(
        self,
        stop: threading.Event,
        reload: Reload | None = None,
        about: Mapping[str, str] = MappingProxyType({}),
        crashes: Sequence[Crash] = (),
        read_owners: Callable[[], None] | None = None,
    ) -> None:
        """Run until ``stop`` is set. Then close all windows and try to deliver them.

        Args:
            stop: Stops the agent.
            reload: Source of new plans, checked every two seconds.
            about: Fields of the first log line. The event of the start has its ``version``,
                ``config`` and ``catalogue``.
            crashes: Crash reports of earlier agents that have no event yet.
            read_owners: Reads the rules of the topics' owners from the lake.

        Raises:
            SpoolError: The rest could not be stored.
        """
        memory.freeze_garbage()
        self._read()
        for fault in self._recorder.found:
            logs.warning(fault.kind, old=fault.old, new=fault.new)
        self._guard("start", lambda: self._recorder.begin(self._clock.wall_us()))
        for crash in crashes:
            self._guard("start", partial(self._note_crash, crash))
        self._named = " ".join(f"{key}={about[key]}" for key in _IN_EVENT if key in about) or None
        self._guard("start", partial(self._note, "agent_start", new=self._named))
        for task in self._tasks.values():
            if task.family.via == "metadata_log":  # its history, before any window is closed
                self._guard_scrape(task, partial(self._scrape, task, stop))
        self._schedule_own(stop, read_owners)
        if reload is not None and reload.is_open:
            self.stats.unfound = {"discovery": "not looked yet"}
            look = partial(self._guard, "discovery", partial(self._look, reload))
            self._schedule.every(LOOK_US, "discover", "discovery", look)
        self._steps.check()
        memory.trim()  # the start needs more memory than the work
        self._schedule.scheduler.start()
        logs.info("agent_started", **about, families=sorted({name for _, name in self._tasks}))
        self.stats.begin()
        while not stop.wait(BEAT_SECONDS):
            self.stats.tick("main")
            self._check_clock()
            if self._stepped.is_set():
                self._stepped.clear()
                self._schedule.realign()
            if reload is not None and reload.wanted():
                self._reload(reload)
            elif reload is not None and (found := reload.found()) is not None:
                self._take(reload, found)
            self._heed_limits()
            self._collect_garbage()
            self._service.beat()
        self._finish()

    def _finish(self) -> None:
        """Close all windows, then deliver. A source that hangs is not waited for."""
        logs.info("agent_stopping", timeout_s=round(_DRAIN_SECONDS))  # a person waits for it
        self._service.stopping()
        self._schedule.scheduler.pause()
        self._sealed.set()
        self._check_clock()
        try:
            self._recorder.flush(self._clock.wall_us())
        finally:
            closed = self._close(self._tasks.values())
            self._drain()
            wait(closed, _CLOSE_SECONDS)
            self._schedule.stop()

    def _schedule_own(self, stop: threading.Event, read_owners: Callable[[], None] | None) -> None:
        """Schedule the jobs that close windows, deliver, and read the rules of owners."""
        deliver = partial(self._guard, "delivery", partial(self._worker.deliver, stop))
        seal = partial(self._guard, "seal", self._seal)
        look_us = min(max(self._recorder.window_us // 60, 1_000_000), 10_000_000)
        self._schedule.every(look_us, "seal", "keeper", seal)
        interval_us, phase_us = self._commit_us
        self._schedule.every(interval_us, "deliver", "lake", deliver, phase_us)
        if read_owners is not None:  # not on the delivery's thread, whose pauses are long
            read = partial(self._guard, "watched_groups", read_owners)
            self._schedule.every(_OWNERS_US, "read owners", "owners", read, phase_us)

    def _scrape(self, task: Task, stop: threading.Event | None = None) -> None:
        """Scrape one family and record it. ``stop`` ends a long history after a response."""
        while not self._sealed.is_set():
            scrape = task.scraper.attempt(task.family, task.interval_us)
            if self._sealed.is_set():
                return  # the agent stopped during the scrape
            self._check_clock()
            self.stats.scraped(scrape)
            self.live.scraped(scrape)
            if scrape.error is not None and scrape.error.startswith(UNEXPECTED):
                self.stats.unexpected_errors.inc()
            self._recorder.record(*expand(scrape))
            self.stats.spool_error = None
            self._failures.report("spool", None)
            if scrape.answer is None or not scrape.answer.more or (stop and stop.is_set()):
                self._outages.scraped(scrape)
                return

    def _seal(self) -> None:
        """Move final windows into batches."""
        self.stats.tick("keeper")
        self._check_clock()
        began_us = self._clock.steady_us()
        if self._recorder.seal(self._clock.wall_us()):
            self.stats.seal_seconds.set((self._clock.steady_us() - began_us) / 1e6)

    def _guard(self, job: str, work: Callable[[], object], **fields: str) -> None:
        """Run a job. A new failure is logged once, and the job runs again at its next tick.

        Args:
            job: Name of the job in the log.
            work: The work. A failed scrape does not raise.
            fields: More fields of the log line.
        """
        try:
            work()
        except SpoolError as error:
            self.stats.spool_error = str(error)
            self._failures.report("spool", str(error))  # once, for all jobs
        except JmxlakeError as error:
            self._failures.report(job, str(error), **fields)
        except Exception as error:  # noqa: BLE001 - APScheduler would print it, in another format
            self.stats.unexpected_errors.inc()
            logs.trace(error)
            self._failures.report(job, unexpected(error), **fields)
        else:
            self._failures.report(job, None, **fields)

    def _guard_scrape(self, task: Task, work: Callable[[], object]) -> None:
        self._guard("record", work, source=task.source, family=task.family.name)

    def _missed(self, job: str) -> None:
        task = next((task for task in [*self._tasks.values()] if task.job == job), None)
        if task is not None:
            self.stats.missed(task.read)
            now_us = self._clock.wall_us()
            tick_us = now_us - now_us % task.interval_us
            scrape = skipped(task.family, task.interval_us, tick_us, task.source)
            self._guard_scrape(task, partial(self._recorder.record, scrape))

    def _look(self, reload: Reload) -> None:
        """Discover the sources that the configuration does not name."""
        before, self.stats.unfound = self.stats.unfound, reload.look()
        for sought in {**before, **self.stats.unfound}:
            self._failures.report("discovery", self.stats.unfound.get(sought), source=sought)

    def _check_clock(self) -> None:
        """Notify the recorder of a clock step before it gets an instant of the new time."""
        with self._stepping:
            step = self._steps.check()
            if step is None:
                return
            self.stats.clock_steps.inc()
            from_us, to_us = step
            logs.warning("clock_step", from_us=from_us, to_us=to_us)
            self._guard("clock", partial(self._recorder.step_clock, from_us, to_us))
            self._stepped.set()

    def _reload(self, reload: Reload) -> None:
        """Set a new plan. If it is invalid, log one line and keep the old plan."""
        self._service.reloading()
        self.stats.reloads.inc()
        self._take(reload, reload.plan)
        self._service.reloaded()

    def _take(self, reload: Reload, planned: Callable[[], Plan]) -> None:
        before, old = self._tasks, self._recorder.catalogue
        try:
            plan = planned()
            self._adopt(plan)
            reload.adopted()
        except Exception as error:  # noqa: BLE001 - the old plan works after any error
            self.stats.reload_failures.inc()
            logs.trace(error)
            known = isinstance(error, JmxlakeError)
            reason = " ".join(str(error).split()) if known else unexpected(error)
            logs.error("config_reload_rejected", error=reason, config="unchanged")
        else:
            changed: dict[str, object] = {**changes(before, self._tasks)}
            if old != plan.scope.catalogue:
                changed["catalogue"] = [plan.scope.catalogue]
            logs.info("config_reloaded", **(changed or {"changed": "nothing"}))

    def _adopt(self, plan: Plan) -> None:
        old, new = self._recorder.catalogue, plan.scope.catalogue
        start = Event(self._clock.wall_us(), "agent_start", Series(""), None, self._named)
        # First, because nothing has changed if it fails.
        self._recorder.reconfigure(plan.scope, start)
        if old != new:
            self._guard("reload", partial(self._note, "catalogue_change", old, new))
        self._planned = {task.read: task for task in plan.tasks}
        self._read()

    def _read(self) -> None:
        """Schedule the planned tasks at the intervals that the limits allow."""
        before, factors = self._tasks, self._limiter.factors(self._families)
        self._tasks = {
            read: task._replace(interval_us=task.interval_us * factors[task.family.name])
            for read, task in self._planned.items()
            if factors[task.family.name]
        }
        self.stats.factors = factors
        self.stats.expect({n: (task.via, task.interval_us) for n, task in self._tasks.items()})
        self.live.expect({n: (task.family, task.interval_us) for n, task in self._tasks.items()})
        self._outages.expect({n: (task.family.via, task.via) for n, task in self._tasks.items()})
        for read in before.keys() - self._tasks.keys():
            self._schedule.scheduler.remove_job(before[read].job)  # a running scrape continues
        kept = {task.scraper for task in self._tasks.values()}
        self._close(task for task in before.values() if task.scraper not in kept)
        for read, task in self._tasks.items():
            if before.get(read) != task:
                work = partial(self._guard_scrape, task, partial(self._scrape, task))
                self._schedule.every(task.interval_us, task.job, task.thread, work)

    @property
    def _families(self) -> dict[str, Task]:
        """One task of each family: it has the same interval for all sources."""
        return {task.family.name: task for task in self._planned.values()}

    def _close(self, tasks: Iterable[Task]) -> list[Future[None]]:
        """Close the scrapers of these tasks on their own threads, after running scrapes."""
        threads = {task.scraper: task.thread for task in tasks}
        return [self._schedule.once(name, scraper.close) for scraper, name in threads.items()]

    def _heed_limits(self) -> None:
        """Scrape the largest family less often if the last window exceeded a limit."""
        families, window = self._families, self._recorder.last_window
        change = self._limiter.weigh(families, *window, self._clock.wall_us())
        self.stats.window_rows = self._limiter.rows
        if change is not None:
            kind, old, new = change.event(families[change.family].interval_us)
            logs.warning(kind, old=old, new=new)
            self._guard("limits", partial(self._note, kind, old, new))
            self._read()

    def _collect_garbage(self) -> None:
        """Collect garbage once a minute: ``memory.freeze_garbage`` disables it otherwise."""
        now_us = self._clock.steady_us()
        if now_us - self._collected_us >= _COLLECT_US:
            gc.collect()
            self._collected_us = now_us

    def _note(self, kind: str, old: str | None = None, new: str | None = None) -> None:
        self._recorder.note(Event(self._clock.wall_us(), kind, Series(""), old, new))

    def _note_crash(self, crash: Crash) -> None:
        text = f"{crash.path.name}: {crash.cause}"
        logs.warning("agent_crashed", report=str(crash.path), cause=crash.cause)
        self._recorder.note(Event(crash.at_us, "agent_crashed", Series(""), None, text))
        crash.seen()

    def _drain(self) -> None:
        try:
            self._schedule.once("lake", self._worker.drain).result(_DRAIN_SECONDS)
        except (JmxlakeError, TimeoutError) as error:
            why = str(error) or "a delivery is still running"
            logs.warning("batches_undelivered", error=why)  # until the next start
        logs.info("agent_stopped")
