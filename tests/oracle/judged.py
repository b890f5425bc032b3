"""Rejected rows of bronze and their reasons, from docs/rollup.md."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.oracle.rows import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.oracle.rows import Run, Scrapes

# Names that no catalogue can give to a metric, and the most bytes that a name may have.
_METRIC = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_LONGEST_NAME = 1024
_GREATEST = 1e19
_SLACK = HOUR


@dataclass(frozen=True)
class Judge:
    """Knows when bronze was committed last, and how long a window is; microseconds."""

    now_us: int
    window_us: int

    def of_scrapes(self, row: Scrapes) -> str | None:
        """Return the reason to reject a row of scrapes; None: it is usable."""
        seconds = (row.seconds_total, row.seconds_max)
        no_number = None if all(map(_number, seconds)) else "the value is no number"
        return self._misplaced(row) or no_number

    def of_run(self, run: Run, told: set[tuple[Any, ...]]) -> str | None:
        """Return the first reason to reject a run; None: it is usable."""
        faults = (why for why, holds in _faults(run, told) if holds)
        return self._misplaced(run) or next(faults, None)

    def _misplaced(self, row: Run | Scrapes) -> str | None:
        if row.end <= row.start:
            return "it ends before it starts"
        if row.start > self.now_us + _SLACK:
            return "it lies in the future"
        if row.end > row.window + self.window_us:
            return f"it crosses a window of {_length(self.window_us)}"
        return "its date is not that of its start" if row.day != row.start // DAY else None


def _length(window_us: int) -> str:
    """``30s`` or ``5m``."""
    minutes, rest = divmod(window_us, 60_000_000)
    return f"{window_us // 1_000_000}s" if rest else f"{minutes}m"


def _number(value: float) -> bool:
    return math.isfinite(value) and abs(value) <= _GREATEST


def _faults(run: Run, told: set[tuple[Any, ...]]) -> Iterable[tuple[str, bool]]:
    labels = dict(run.labels).values()
    names = [name or "" for name in (run.topic, run.user, run.client_id, run.group, *labels)]
    mangled = run.topic == "" or any(len(name.encode()) > _LONGEST_NAME for name in names)
    return {
        "an edge is negative": run.lead < 0 or run.tail < 0,
        "an edge is longer than a day": max(run.lead, run.tail) > DAY,
        "the value is no number": run.value is not None and not _number(run.value),
        "a count is negative": "increase" in run.flags and (run.value or 0) < 0,
        "no metric can have this name": not _METRIC.fullmatch(run.metric),
        "a name is empty or too long": mangled,
        "topic is missing": run.partition is not None and run.topic is None,
        "the partition is negative": run.partition is not None and run.partition < 0,
        "it stands for no series": run.series < 1,
        "it stands for several series without a set": run.members is None and run.series > 1,
        "its member set is not known": run.members is not None and not told,
        "its member set has several contents": len(told) > 1,
        "it is not what its member set holds": len(told) == 1 and not _fits(run, *told),
        "it folds series that are not zero": run.members is not None and bool(run.value),
    }.items()


def _fits(run: Run, told: tuple[Any, ...]) -> bool:
    """Whether a row can stand for just the series of its set."""
    topic, partitions, clients = told
    held = partitions if partitions is not None else clients
    if held is None or len(set(held)) != run.series or len(held) != run.series:
        return False
    if clients is not None:
        return run.topic is None and run.partition is None
    numbers = run.partition is None and None not in partitions and min(partitions) >= 0
    return numbers and topic is not None and run.topic == topic
