"""Limits that act: beyond one of them the largest family is read less often, at last not at all.

What is decided here follows from what was counted alone; the agent does it and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from collector import footprint
from lakehouse.tables import MAX_GAP_INTERVALS

if TYPE_CHECKING:
    from collector.plan import Task

OFF: Final = 0
"""The factor of a family that is not read."""
MOST: Final = 8
"""How many times as long as configured an interval may become."""
_CALM_US: Final = 3_600_000_000


class Bounds(NamedTuple):
    """Rows of bronze/runs a window, and resident memory in bytes, that should not be passed."""

    window_rows: int
    memory_bytes: int


class Load(NamedTuple):
    """What a window took that was sealed.

    Attributes:
        start_us: When the window began.
        rows: Rows of bronze/runs, by family.
        memory_bytes: Resident memory after it was sealed.
    """

    start_us: int
    rows: Mapping[str, int]
    memory_bytes: int


class Change(NamedTuple):
    """A family is to be read at another multiple of its configured interval."""

    family: str
    before: int
    after: int

    @property
    def kind(self) -> str:
        """Of the event that says so."""
        coarser = self.after == OFF or 0 < self.before < self.after
        return "family_coarsened" if coarser else "family_restored"

    def said(self, interval_us: int) -> tuple[str, str]:
        """How often the family was read and is read, as the event says it."""
        seconds = [factor * interval_us / 1e6 for factor in (self.before, self.after)]
        old, new = (f"every {one:g} s" if one else "not read" for one in seconds)
        return f"{self.family} {old}", f"{self.family} {new}"


@dataclass(frozen=True, slots=True)
class Coarsening:
    """Which families are read less often than configured.

    Attributes:
        factors: By family, in the order in which they were coarsened; ``OFF``: not read.
        changed_us: When the last of them changed.
        calm_us: Since when no more than half of each bound is taken; None: more is.
    """

    factors: Mapping[str, int] = field(default_factory=dict)
    changed_us: int = 0
    calm_us: int | None = None

    def factor(self, family: str) -> int:
        """The multiple of its configured interval at which a family is read."""
        return self.factors.get(family, 1)


def room(interval_us: int, window_us: int) -> int:
    """The largest factor at which a window has room for two scrapes and a gap."""
    fits = (one for one in (MOST, 4, 2) if one * interval_us * MAX_GAP_INTERVALS < window_us)
    return next(fits, 1)


def decide(
    state: Coarsening, load: Load, bounds: Bounds, longest: Mapping[str, int], now_us: int
) -> tuple[Coarsening, Change | None]:
    """What is to change after a window was sealed; at most one family at a time.

    Args:
        state: As it is.
        load: Of a window; one that began before the last change says nothing.
        bounds: What should not be passed.
        longest: By family the largest factor that there is room for; others stay as they are.
        now_us: The instant, in microseconds since the epoch.
    """
    if load.start_us < state.changed_us:
        return state, None
    rows, memory = sum(load.rows.values()), load.memory_bytes
    change, calm_us = None, None
    if rows > bounds.window_rows or memory > bounds.memory_bytes:
        change = _coarser(state, load, longest, may_stop=rows > bounds.window_rows)
    elif 2 * rows <= bounds.window_rows and 2 * memory <= bounds.memory_bytes:
        calm_us = state.calm_us or now_us
        if state.factors and now_us - calm_us >= _CALM_US:  # take back what was done last
            family, before = list(state.factors.items())[-1]
            change = Change(family, before, before // 2 or longest.get(family, 1))
    if change is None:
        return replace(state, calm_us=calm_us), None
    factors = {**state.factors, change.family: change.after}
    kept = {name: factor for name, factor in factors.items() if factor != 1}
    return Coarsening(kept, now_us), change


def _coarser(
    state: Coarsening, load: Load, longest: Mapping[str, int], *, may_stop: bool
) -> Change | None:
    for family in sorted(longest, key=lambda one: (-load.rows.get(one, 0), one)):
        before = state.factor(family)
        if before == OFF or not load.rows.get(family):
            continue
        if before * 2 <= longest[family]:
            return Change(family, before, before * 2)
        if may_stop:
            return Change(family, before, OFF)
    return None


class Limiter:
    """Weighs every window that was sealed, and reads the largest family less often.

    Args:
        bounds: What should not be passed; None: there are none.
        window_us: Length of a window.

    Attributes:
        rows: Rows of bronze/runs of the window that was sealed last, by family.
    """

    def __init__(self, bounds: Bounds | None, window_us: int) -> None:
        self._bounds, self._window_us = bounds, window_us
        self._state, self._weighed_us = Coarsening(), 0
        self.rows: Mapping[str, int] = {}

    def weigh(
        self, tasks: Mapping[str, Task], window: tuple[int, Mapping[str, int]], now_us: int
    ) -> Change | None:
        """What changes after a window; None where nothing does, or it was weighed before.

        Args:
            tasks: What is configured, by family.
            window: Its start, and its rows of bronze/runs by metric.
            now_us: The instant, in microseconds since the epoch.
        """
        start_us, metrics = window
        if start_us == self._weighed_us:
            return None
        of = {metric.name: name for name, task in tasks.items() for metric in task.family.metrics}
        rows = Counter[str]()
        for metric, count in metrics.items():
            rows[of.get(metric, "other")] += count
        self._weighed_us, self.rows = start_us, rows
        if self._bounds is None:
            return None
        longest = {
            name: room(task.interval_us, self._window_us)
            for name, task in tasks.items()
            if task.family.via != "metadata_log"  # which says all that happened, however seldom
        }
        load = Load(start_us, self.rows, footprint.resident_bytes())
        self._state, change = decide(self._state, load, self._bounds, longest, now_us)
        return change if change is not None and change.family in tasks else None

    def factors(self, tasks: Mapping[str, Task]) -> dict[str, int]:
        """By family, how many times as long as configured its interval is; ``OFF``: not read."""
        return {name: self._state.factor(name) for name in tasks}
