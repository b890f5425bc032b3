"""Figures of gold that a field of a record can be made of: ``Means(text, Max(METRIC))``.

Each has one method, ``figure``, from sums of gold of one subject, by metric. They are no tuples:
typing takes two annotations for one if they are equal, as tuples of different types can be.
"""

from dataclasses import dataclass
from typing import ClassVar

from lakehouse.report.facts.fields import (
    NONE,
    Bounds,
    Known,
    Metrics,
    duration,
    per_second,
    total,
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A column of gold as it is."""

    metric: str
    column: str

    def figure(self, rows: Metrics) -> Known:
        """Return the value of the column; None without it."""
        found: Known = (rows.get(self.metric) or {}).get(self.column)
        return found


@dataclass(frozen=True, slots=True)
class _OfColumn:
    """A figure that one column of gold has."""

    metric: str
    column: ClassVar[str]

    def figure(self, rows: Metrics) -> Known:
        """Return it; None: the gauge was not read."""
        return Stored(self.metric, self.column).figure(rows)


@dataclass(frozen=True, slots=True)
class Max(_OfColumn):
    """The greatest value of a gauge."""

    column: ClassVar[str] = "value_max"


@dataclass(frozen=True, slots=True)
class Min(_OfColumn):
    """The least value of a gauge."""

    column: ClassVar[str] = "value_min"


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a gauge over the time in which it was read, or was above zero."""

    metric: str
    above_zero: bool = False

    def figure(self, rows: Metrics) -> Known:
        """Return it; None without such time."""
        row = rows.get(self.metric) or {}
        return per_second(row, "series_affected_us" if self.above_zero else "series_seen_us")


@dataclass(frozen=True, slots=True)
class Sum(_OfColumn):
    """A gauge summed over time, value times seconds: partition-seconds, bytes of a rate."""

    column: ClassVar[str] = "value_seconds"


@dataclass(frozen=True, slots=True)
class Time:
    """The time in which a gauge was above zero, summed over series."""

    metric: str
    stem: ClassVar[str] = "series_affected"

    def figure(self, rows: Metrics) -> Bounds:
        """Return it with its bounds, microseconds."""
        return duration(rows.get(self.metric) or {}, self.stem)


@dataclass(frozen=True, slots=True)
class AnyTime(Time):
    """The time in which a gauge of any series was above zero."""

    stem: ClassVar[str] = "affected"


@dataclass(frozen=True, slots=True)
class HeldBack(Time):
    """The time in which a gauge of waits was above zero."""

    def figure(self, rows: Metrics) -> Bounds:
        """Return it with its bounds, microseconds.

        Versions that lose the bean of waits after an hour without one (KAFKA-19484) have no upper
        bound. Without the bean there was no wait, or this Kafka has none.
        """
        held = Time(self.metric).figure(rows)
        return held._replace(high=None) if rows.get(self.metric, {}).get("known_wrong") else held


@dataclass(frozen=True, slots=True)
class Rise:
    """The increase of a counter, for which rows need its bounds (``counters.with_bounds``).

    Attributes:
        metric: The counter.
        beside: A metric of the same scrapes: without a row of a counter the increase is 0 where
            this metric was read. None: it is not known.
        more: Further counters, whose increases are added.
    """

    metric: str
    beside: str | None = None
    more: tuple[str, ...] = ()

    def figure(self, rows: Metrics) -> Bounds:
        """Return the increase with its bounds."""
        if self.beside is None:
            return _increase(rows, self.metric)
        counters = (self.metric, *self.more)
        known = [_increase(rows, name) for name in counters if rows.get(name)]
        if not (known or rows.get(self.beside)):
            return Bounds()
        nothing = rows.get(self.beside, {}).get("no_increase", NONE)
        return total(known if len(known) == len(counters) else [nothing, *known])


@dataclass(frozen=True, slots=True)
class Increase:
    """The increase of a counter without its bounds."""

    metric: str

    def figure(self, rows: Metrics) -> Known:
        """Return it; None: the counter was not read."""
        return Stored(self.metric, "increase").figure(rows)


def _increase(rows: Metrics, metric: str) -> Bounds:
    row = rows.get(metric) or {}
    return Bounds(*(row.get(f"increase{bound}") for bound in ("", "_low", "_high")))
