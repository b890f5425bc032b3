"""Load shedding: above a limit the largest family is scraped less often, and finally disabled.

This module decides from counts. The agent acts and records the event.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from collector.agent.plan import Task
from collector.config.schema import Limits
from collector.telemetry import memory
from lakehouse.tables import MAX_GAP_INTERVALS

OFF: Final = 0
"""Factor of a disabled family."""
MOST: Final = 8
"""Largest factor of an interval."""
_HISTORIES: Final = ("metadata_log", "remote_log")
_CALM_US: Final = 3_600_000_000


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
            if task.family.via not in _HISTORIES  # the whole history at any interval
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
