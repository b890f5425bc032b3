"""When things are done: at ticks aligned to the epoch, whatever the clock did meanwhile."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.date import DateTrigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# After a start somebody waits for the first; agents that start together stay apart all the same.
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
        after_us = (after - _EPOCH) // _MICROSECOND
        tick_us = after_us - (after_us - self._phase_us) % self._interval_us + self._interval_us
        return _EPOCH + timedelta(microseconds=tick_us)


class _Scheduler(BackgroundScheduler):  # type: ignore[misc]
    def remove_job(self, job_id: str, jobstore: str | None = None) -> None:
        # Stopped while it is at a job that is done only once, APScheduler 3.11 looks for that among
        # those of a scheduler that never ran, and its thread ends with a traceback.
        with suppress(JobLookupError):
            super().remove_job(job_id, jobstore)


class Schedule:
    """Jobs on threads of their own kind; a job that is late or hangs delays no other kind.

    Args:
        threads: Names of the threads.
    """

    def __init__(self, threads: Iterable[str]) -> None:
        self._threads = set(threads)
        self.scheduler = _Scheduler(
            executors={name: ThreadPoolExecutor(1) for name in self._threads},
            timezone=UTC,
            job_defaults={"coalesce": True, "max_instances": 1},
        )

    def every(
        self,
        interval_us: int,
        name: str,
        thread: str,
        work: Callable[[], None],
        phase_us: int = 0,
    ) -> None:
        """Do something at every tick, and once at the start; a job of that name is replaced.

        Args:
            interval_us: From tick to tick, counted from the epoch.
            name: Of the job.
            thread: Where it is done.
            work: What is done.
            phase_us: How much later than the interval's multiples the ticks are; the one at the
                start comes a fifth of that later.
        """
        self.once(thread, work, phase_us // _HASTE)
        self.scheduler.add_job(
            work,
            EpochTrigger(interval_us, phase_us),
            id=name,
            executor=thread,
            # Late is better than never: behind one that hangs for as long as its interval, others
            # would miss every tick, and nothing would say why.
            misfire_grace_time=None,
            replace_existing=True,
        )

    def once(self, thread: str, work: Callable[[], None], delay_us: int = 0) -> None:
        """Do something as soon as what the thread is at has ended; the thread may be new.

        Args:
            thread: Where it is done.
            work: What is done.
            delay_us: Not before that much time has passed.
        """
        if thread not in self._threads:
            self._threads.add(thread)
            self.scheduler.add_executor(ThreadPoolExecutor(1), thread)
        due = datetime.now(UTC) + timedelta(microseconds=delay_us)
        self.scheduler.add_job(
            work, DateTrigger(due, UTC), executor=thread, misfire_grace_time=None
        )

    def cancel(self, name: str) -> None:
        """Do it no longer; what is under way goes on to its end."""
        self.scheduler.remove_job(name)

    def realign(self) -> None:
        """After the clock was set: wait for the next tick of the new time, not of the old."""
        now = datetime.now(UTC)
        for job in self.scheduler.get_jobs():
            if isinstance(job.trigger, EpochTrigger):
                job.modify(next_run_time=job.trigger.get_next_fire_time(None, now))
