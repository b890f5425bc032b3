"""Jobs at ticks aligned to the epoch, also after the clock was set."""

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
# After a start an operator waits for the first tick; agents that start together stay apart.
_HASTE: Final = 5


def phase_us(key: str, interval_us: int) -> int:
    """Where in an interval one of many has its ticks: always the same, and spread evenly."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % interval_us


class EpochTrigger(BaseTrigger):  # type: ignore[misc]
    """Fires at multiples of an interval since the epoch, plus a phase.

    APScheduler's IntervalTrigger counts from when it was started, and lists every tick that was
    missed: after a clock set forward by years that is hours of work and gigabytes.
    """

    def __init__(self, interval_us: int, phase_us: int = 0) -> None:
        self._interval_us, self._phase_us = interval_us, phase_us

    def get_next_fire_time(self, previous_fire_time: datetime | None, now: datetime) -> datetime:
        """The first tick after now and after the last one that fired."""
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
    """Jobs on threads by name; a job that is late or hangs delays no other thread.

    Args:
        missed: Called with the name of a job whose tick came while it was still under way.
    """

    def __init__(self, missed: Callable[[str], None] = lambda _: None) -> None:
        logging.getLogger("apscheduler").setLevel(logging.ERROR)  # a missed tick is ours to say
        self._threads: dict[str, _Thread] = {}
        # Late is better than never: behind one that hangs for as long as its interval, others
        # would miss every tick, and nothing would say why.
        defaults = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
        self.scheduler = BackgroundScheduler(timezone=UTC, job_defaults=defaults)
        self.scheduler.add_listener(lambda event: missed(event.job_id), EVENT_JOB_MAX_INSTANCES)

    def every(
        self, interval_us: int, name: str, thread: str, work: Callable[[], None], phase_us: int = 0
    ) -> None:
        """Run a job at every tick, and once at the start; a job of that name is replaced.

        Args:
            interval_us: From tick to tick, counted from the epoch.
            name: Of the job.
            thread: Where it is done; it may be new.
            work: What is done.
            phase_us: How much later than the interval's multiples the ticks are; the one at the
                start comes a fifth of that later.
        """
        self._thread(thread)
        trigger = EpochTrigger(interval_us, phase_us)
        first = datetime.now(UTC) + timedelta(microseconds=phase_us // _HASTE)
        self.scheduler.add_job(
            work, trigger, id=name, executor=thread, next_run_time=first, replace_existing=True
        )

    def once(self, thread: str, work: Callable[[], None]) -> Future[None]:
        """Run work once, after the current work of the thread; the thread may be new."""
        return self._thread(thread).do(work)

    def realign(self) -> None:
        """After the clock was set: wait for the next tick of the new time, not of the old."""
        now = datetime.now(UTC)
        for job in self.scheduler.get_jobs():
            job.modify(next_run_time=job.trigger.get_next_fire_time(None, now))

    def stop(self) -> None:
        """Start no more jobs; those under way go on and are not waited for."""
        self.scheduler.shutdown(wait=False)

    def _thread(self, name: str) -> _Thread:
        if name not in self._threads:
            self._threads[name] = _Thread(name)
            self.scheduler.add_executor(self._threads[name], name)
        return self._threads[name]
