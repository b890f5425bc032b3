"""When the agent scrapes and delivers: ticks aligned to the epoch, load shedding, and retries.

A clock step, which ``StepDetector`` finds, does not shift the ticks. Load shedding scrapes the
largest family less often while the agent exceeds a limit, and finally disables it: ``Limiter``
decides from counts, the agent acts and records the event. ``DeliveryWorker`` waits longer after
each failed delivery.
"""

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import tenacity
from apscheduler.events import EVENT_JOB_MAX_INSTANCES
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

from collector.agent.plan import Task
from collector.config.schema import Limits
from collector.errors import LakeError
from collector.model import Clock
from collector.telemetry import memory
from collector.telemetry.agent_stats import AgentStats
from lakehouse.tables import MAX_GAP_INTERVALS

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
# An operator waits for the first tick; agents that start together must not tick together.
_HASTE: Final = 5
OFF: Final = 0
"""Factor of a disabled family."""
MOST: Final = 8
"""Largest factor of an interval."""
_LOOK_US: Final = 100_000  # longest time between reading the two clocks
_STEP_US: Final = 1_000_000  # NTP slews offsets below half a second and steps larger ones
_CALM_US: Final = 3_600_000_000
# Full jitter: a random wait between 0 and a maximum that doubles, so that agents that lost the lake
# at the same time do not return at the same time.
_FIRST_WAIT_SECONDS: Final = 2.0
_LONGEST_WAIT_SECONDS: Final = 600.0
_DRAIN_US: Final = 30_000_000


def phase_us(key: str, interval_us: int) -> int:
    """Return a fixed delay within an interval. The delays of many keys are evenly distributed."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % interval_us


class EpochTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires at multiples of an interval since the epoch, plus a phase.

    APScheduler's IntervalTrigger counts from its start and lists every missed tick. After a clock
    step of years this takes hours and gigabytes.
    """

    def __init__(self, interval_us: int, phase_us: int = 0) -> None:
        self._interval_us, self._phase_us = interval_us, phase_us

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """Return the first tick after now and after the last tick."""
        after = max(now, previous_fire_time) if previous_fire_time else now
        after_us = (after - _EPOCH) // timedelta(microseconds=1)
        tick_us = after_us - (after_us - self._phase_us) % self._interval_us + self._interval_us
        return _EPOCH + timedelta(microseconds=tick_us)


@dataclass(slots=True)
class StepDetector:
    """Compares the two clocks from call to call."""

    clock: Clock
    _offset_us: int | None = field(default=None, init=False)

    def check(self) -> tuple[int, int] | None:
        """Return old and new time of a step of the wall clock since the last call. None if none."""
        wall_us, steady_us = self._both()
        before, self._offset_us = self._offset_us, wall_us - steady_us
        if before is None or abs(self._offset_us - before) < _STEP_US:
            return None
        return steady_us + before, wall_us

    def _both(self) -> tuple[int, int]:
        """Return both clocks at one instant. Repeat if the thread was preempted in between."""
        while True:
            earlier_us, wall_us = self.clock.steady_us(), self.clock.wall_us()
            steady_us = self.clock.steady_us()
            if steady_us - earlier_us < _LOOK_US:
                return wall_us, steady_us


class _Thread(ThreadPoolExecutor):  # type: ignore[misc]
    def __init__(self, name: str) -> None:
        super().__init__(1, {"thread_name_prefix": name})

    def do(self, work: Callable[[], None]) -> Future[None]:
        future: Future[None] = self._pool.submit(work)
        return future


class Schedule:
    """Jobs on named threads. A late or hanging job does not delay other threads.

    Args:
        missed: Called with the name of a job that was still running at its next tick.
    """

    def __init__(self, missed: Callable[[str], None] = lambda _: None) -> None:
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # the agent logs missed ticks
        self._threads: dict[str, _Thread] = {}
        # Late jobs must run: behind a job that hangs for its interval, others would miss every
        # tick without a message.
        defaults = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        self.scheduler = BackgroundScheduler(timezone=UTC, job_defaults=defaults)
        self.scheduler.add_listener(lambda event: missed(event.job_id), EVENT_JOB_MAX_INSTANCES)

    def every(
        self, interval_us: int, name: str, thread: str, work: Callable[[], None], phase_us: int = 0
    ) -> None:
        """Run a job at every tick, and once at the start. It replaces a job of the same name.

        Args:
            interval_us: Interval of the ticks.
            name: Name of the job.
            thread: Name of its thread, which is created if needed.
            work: The job.
            phase_us: Delay of the ticks after the interval's multiples. The first run comes after
                a fifth of it.
        """
        self._thread(thread)
        trigger = EpochTrigger(interval_us, phase_us)
        first = datetime.now(UTC) + timedelta(microseconds=phase_us // _HASTE)
        self.scheduler.add_job(
            work, trigger, id=name, executor=thread, next_run_time=first, replace_existing=True
        )

    def once(self, thread: str, work: Callable[[], None]) -> Future[None]:
        """Run work once, after the current work of the thread. The thread is created if needed."""
        return self._thread(thread).do(work)

    def realign(self) -> None:
        """Move all jobs to the next tick of the new time after a clock step."""
        now = datetime.now(UTC)
        for job in self.scheduler.get_jobs():
            job.modify(next_run_time=job.trigger.get_next_fire_time(None, now))

    def stop(self) -> None:
        """Stop starting jobs. Running jobs continue in the background."""
        self.scheduler.shutdown(wait=False)

    def _thread(self, name: str) -> _Thread:
        if name not in self._threads:
            self._threads[name] = _Thread(name)
            self.scheduler.add_executor(self._threads[name], name)
        return self._threads[name]


class Change(NamedTuple):
    """New factor of a family's configured interval."""

    family: str
    before: int
    after: int

    def event(self, interval_us: int) -> tuple[str, str, str]:
        """Return kind, old and new value of the event."""
        coarser = self.after == OFF or 0 < self.before < self.after
        seconds = [factor * interval_us / 1e6 for factor in (self.before, self.after)]
        old, new = (f"every {interval:g} s" if interval else "not read" for interval in seconds)
        kind = "family_coarsened" if coarser else "family_restored"
        return kind, f"{self.family} {old}", f"{self.family} {new}"


def room(interval_us: int, window_us: int) -> int:
    """Return the largest factor with which two scrapes and a gap fit into a window."""
    fits = (
        factor for factor in (MOST, 4, 2) if factor * interval_us * MAX_GAP_INTERVALS < window_us
    )
    return next(fits, 1)


class Limiter:
    """Checks every closed window against the limits and decides the factors of families.

    Args:
        limits: Limits of rows per window and of memory. None: no limits.
        window_us: Window length.

    Attributes:
        rows: Rows of bronze/runs of the last closed window, by family.
    """

    def __init__(self, limits: Limits | None, window_us: int) -> None:
        self._limits, self._window_us = limits, window_us
        self._factors: dict[str, int] = {}  # in the order in which families were coarsened
        self._changed_us = self._weighed_us = 0
        self._calm_us: int | None = None  # start of the time below half of each limit
        self.rows: Mapping[str, int] = {}

    def factors(self, tasks: Mapping[str, Task]) -> dict[str, int]:
        """Return the factor of the configured interval by family. ``OFF`` if it is disabled."""
        return {name: self._factors.get(name, 1) for name in tasks}

    def weigh(
        self, tasks: Mapping[str, Task], start_us: int, metrics: Mapping[str, int], now_us: int
    ) -> Change | None:
        """Return the change after a window. None without a change or a new window.

        Args:
            tasks: Configured tasks, by family.
            start_us: Start of the last closed window.
            metrics: Its rows of bronze/runs, by metric.
            now_us: Current time (µs since the epoch).
        """
        if start_us == self._weighed_us:
            return None
        of = {metric.name: name for name, task in tasks.items() for metric in task.family.metrics}
        rows = Counter[str]()
        for metric, count in metrics.items():
            rows[of.get(metric, "other")] += count
        self._weighed_us, self.rows = start_us, rows
        # A window that started before the last change contains rows of the old interval.
        if self._limits is None or start_us < self._changed_us:
            return None
        change = self._decide(tasks, self._limits, now_us)
        if change is None:
            return None
        self._changed_us, self._calm_us = now_us, None
        self._factors[change.family] = change.after
        if change.after == 1:
            del self._factors[change.family]
        return change if change.family in tasks else None

    def _decide(self, tasks: Mapping[str, Task], limits: Limits, now_us: int) -> Change | None:
        longest = {
            name: room(task.interval_us, self._window_us)
            for name, task in tasks.items()
            if not task.resumes
        }
        rows, used = sum(self.rows.values()), memory.anonymous_bytes()
        too_many = rows > limits.window_rows
        if 2 * rows > limits.window_rows or 2 * used > limits.memory:
            self._calm_us = None
            if too_many or used > limits.memory:
                return self._coarser(longest, may_stop=too_many)
            return None
        self._calm_us = self._calm_us or now_us
        if not self._factors or now_us - self._calm_us < _CALM_US:
            return None
        family, before = list(self._factors.items())[-1]  # the last step first
        return Change(family, before, before // 2 or longest.get(family, 1))

    def _coarser(self, longest: Mapping[str, int], *, may_stop: bool) -> Change | None:
        for family in sorted(longest, key=lambda name: (-self.rows.get(name, 0), name)):
            before = self._factors.get(family, 1)
            if before == OFF or not self.rows.get(family):
                continue
            if before * 2 <= longest[family]:
                return Change(family, before, before * 2)
            if may_stop:
                return Change(family, before, OFF)
        return None


class DeliveryWorker:
    """Delivers the undelivered batches of the spool.

    Args:
        take: Delivers the oldest batches and returns their number. 0: the spool is empty.
        clock: Clock.
        stats: Agent counters.
        report: Called with the text of every failure before another attempt.
    """

    def __init__(
        self,
        take: Callable[[], int],
        clock: Clock,
        stats: AgentStats,
        report: Callable[[str], None],
    ) -> None:
        self._take, self._clock, self._stats, self._report = take, clock, stats, report

    def deliver(self, stop: threading.Event) -> None:
        """Deliver all batches, and retry while the lake is unavailable. ``stop`` ends it at once.

        Raises:
            JmxlakeError: The delivery failed; undelivered batches stay in the spool.
        """
        patience = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(LakeError),
            wait=tenacity.wait_random_exponential(_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS),
            sleep=tenacity.sleep_using_event(stop), stop=tenacity.stop_when_event_set(stop),
            before_sleep=self._note, reraise=True,
        )  # fmt: skip
        before = self._stats.delivered
        with self._stats.delivery_seconds.time():
            # A delivered group shows that the lake is available, so the next group has short waits.
            while not stop.is_set() and patience(self._deliver_next):
                pass
            if self._stats.delivered > before:
                memory.trim()

    def drain(self) -> None:
        """Deliver batches at an orderly stop, for half a minute at most.

        Raises:
            JmxlakeError: The delivery failed; undelivered batches stay in the spool.
        """
        until_us = self._clock.steady_us() + _DRAIN_US
        while self._clock.steady_us() < until_us and self._deliver_next():
            pass

    def _deliver_next(self) -> int:
        try:
            batches = self._take()
        except Exception as error:
            self._stats.commit_failed()
            if isinstance(error, LakeError):
                self._stats.lake_error = str(error)
            raise
        self._stats.committed(batches)
        self._stats.lake_error = None
        return batches

    def _note(self, attempt: tenacity.RetryCallState) -> None:
        failure = attempt.outcome.exception() if attempt.outcome else None
        if failure is not None:
            # The traceback would keep the batches' rows in memory for up to ten minutes.
            failure.__traceback__ = failure.__context__ = None
            self._report(str(failure))
