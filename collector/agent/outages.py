"""The log of outages: one line when a source stops responding, and one when it responds again.

A source that is down fails every family of every transport, each at its next scrape. The log has
one line for all of them. A failure joins the outage of its source in the first five minutes, or
while its transport has not responded since the start of the outage. Later failures are an outage of
their own, so that a family that always fails does not hide an outage of its source.

One failed scrape of a family is not an outage, unless its source does not respond at all.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from collector.agent.plan import Task
from collector.clock import Clock
from collector.model import Scrape
from collector.telemetry import logs
from collector.telemetry.agent_stats import Read

_QUIET_US: Final = 300_000_000


@dataclass(slots=True)
class _Outage:
    """Failures of a source with one cause.

    Attributes:
        source: Name of the source.
        start_us: Time of the first failure, of a steady clock.
        logged: Logged errors.
        next_us: Time from which another error is logged, by transport.
        failed: Families that have not responded since their failure.
        families: Every family that failed, in the order of the failures.
        silent: Transports without a response since their failure.
    """

    source: str
    start_us: int
    logged: set[str] = field(default_factory=set)
    next_us: dict[str, int] = field(default_factory=dict)
    failed: set[Read] = field(default_factory=set)
    families: dict[str, None] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)

    def includes(self, task: Task, now_us: int) -> bool:
        """Return True if a failure of this task belongs to the outage."""
        if self.source != task.source:
            return False
        is_known = task.read in self.failed or task.family.via in self.silent
        return is_known or now_us - self.start_us < _QUIET_US


class OutageLog:
    """Logs the start and the end of each outage. Any thread may call any method.

    Another error during an outage is logged after five minutes at the earliest. The outage must be
    twice as old for each further error of the same transport.

    Args:
        clock: Clock of durations.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._tasks: Mapping[Read, Task] = {}
        self._outages: list[_Outage] = []

    def expect(self, tasks: Mapping[Read, Task]) -> None:
        """Set the tasks. A removed family does not keep an outage open."""
        with self._lock:
            self._tasks = tasks
            for outage in self._outages:
                outage.failed &= tasks.keys()
            self._outages = [outage for outage in self._outages if outage.failed]

    def scraped(self, task: Task, scrape: Scrape) -> None:
        """Log the result of a scrape if an outage starts or ends with it."""
        with self._lock:
            if task.read not in self._tasks:
                return  # a reload removed it during the scrape
            if scrape.error is None:
                self._end(task)
            else:
                self._fail(task, scrape)

    def _fail(self, task: Task, scrape: Scrape) -> None:
        now_us, via = self._clock.steady_us(), task.family.via
        included = [outage for outage in self._outages if outage.includes(task, now_us)]
        outage = included[0] if included else _Outage(task.source, now_us)
        self._outages += [] if included else [outage]
        # A family with its own connection does not show that the others fail.
        is_silent = scrape.identity is None and task.via == via
        if is_silent:
            outage.silent.add(via)
        failed = self._reads(task) if is_silent else [task.read]
        outage.failed.update(failed)
        names = [family for _, family in failed]
        outage.families |= dict.fromkeys(names)
        if not included and not is_silent:
            return  # the next scrape shows which families fail
        error = scrape.error or scrape.outcome
        is_due = now_us >= outage.next_us.get(via, outage.start_us + _QUIET_US)
        if error not in outage.logged and (is_due or not outage.logged):
            outage.logged.add(error)
            outage.next_us[via] = now_us + max(_QUIET_US, now_us - outage.start_us)
            where = {"source": task.source, "transport": via, "families": names}
            logs.warning("scrape_failed", **where, error=error)

    def _end(self, task: Task) -> None:
        via = task.family.via
        for outage in [*self._outages]:
            if outage.source != task.source:
                continue
            # After a response of the transport, each family that fails again is a new failure.
            ended = self._reads(task) if via in outage.silent else [task.read]
            outage.silent.discard(via)
            outage.failed.difference_update(ended)
            if outage.failed:
                continue
            self._outages.remove(outage)
            if outage.logged:
                down_s = round((self._clock.steady_us() - outage.start_us) / 1e6)
                families = [*outage.families]
                logs.info("scrape_recovered", source=task.source, families=families, down_s=down_s)

    def _reads(self, task: Task) -> list[Read]:
        """Return the families of a task's source and transport, in the order of the catalogue."""
        at = task.source, task.family.via
        return [read for read, one in self._tasks.items() if (one.source, one.family.via) == at]
