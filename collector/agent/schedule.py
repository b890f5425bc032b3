"""Job scheduling: fixed ticks aligned to the epoch. A clock step does not shift them."""

import hashlib
import logging
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Final

from apscheduler.events import EVENT_JOB_MAX_INSTANCES
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
# An operator waits for the first tick; agents that start together must not tick together.
_HASTE: Final = 5


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
