"""What shall hold for which share of the time, or of events; and over which span of time."""

import calendar
import datetime as dt
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from lakehouse.core.patterns import matches
from lakehouse.core.periods import Period

Level = Literal["cluster", "topic", "partition", "client", "group", "source"]
Method = Literal["GoodSeconds", "Timeslices", "RatioTimeslices", "Occurrences"]
Op = Literal["lte", "lt", "gte", "gt"]
"""How a good value compares with the threshold (OpenSLO)."""
Unknown = Literal["interval", "exclude", "good", "bad"]
"""How a verdict takes unknown time: both ways, left out, as good or as bad."""

_DAYS: Final = {"d": 1, "w": 7}
_MONTHS: Final = {"M": 1, "Q": 3, "Y": 12}
_MONDAY: Final = dt.datetime(2026, 1, 5)  # noqa: DTZ001 - a local time
LONGEST_DAYS: Final = 366

NAMES: Final = ("cluster", "topic", "user", "client_id", "group", "source")
"""Keys of ``match`` that are names of a subject; all others are labels of its series."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """How long a window is, and from when windows are counted.

    Attributes:
        count: How many units.
        unit: d, w, M, Q or Y.
        anchor: Local time at which one of the windows begins; None: it is rolling.
        zone: The calendar's time zone.
    """

    count: int = 1
    unit: str = "w"
    anchor: dt.datetime | None = _MONDAY
    zone: str = "UTC"

    @property
    def is_rolling(self) -> bool:
        """Whether it may end at any instant, not only at an edge of the calendar."""
        return self.anchor is None

    @property
    def name(self) -> str:
        """``1w`` of ISO weeks, ``28d``, ``1M``; weeks that begin at another instant are days."""
        at = self.anchor
        on_monday = at is not None and at.weekday() == 0 and at.time() == dt.time()
        is_iso = on_monday and self.zone == "UTC" and self.count == 1
        if self.unit == "w" and not is_iso:
            return f"{7 * self.count}d"
        return f"{self.count}{self.unit}"

    def of(self, period: Period) -> Period:
        """The window that a report on a period is to tell of.

        A rolling one ends with the period. Of a calendar's it is the last one that came to its end
        within the period; where none did, the one that is under way at its end, in whole.
        """
        if self.anchor is None:
            return Period(period.end - dt.timedelta(days=self._days), period.end, self.name)
        number = self._number(period.end)
        if self._start(number) > period.start:  # where it begins, the one before came to its end
            number -= 1
        return Period(self._start(number), self._start(number + 1), self.name)

    @property
    def _days(self) -> int:
        return self.count * _DAYS[self.unit]

    def _number(self, moment: dt.datetime) -> int:
        """Which window a moment lies in, counted from the anchor's; at a border the later one."""
        anchor = self.anchor or _MONDAY
        local = moment.astimezone(zoneinfo.ZoneInfo(self.zone)).replace(tzinfo=None)
        if self.unit in _DAYS:
            guess = (local - anchor) // dt.timedelta(days=self._days)
        else:
            months = (local.year - anchor.year) * 12 + local.month - anchor.month
            guess = months // (self.count * _MONTHS[self.unit])
        while self._start(guess) > moment:
            guess -= 1
        while self._start(guess + 1) <= moment:
            guess += 1
        return guess

    def _start(self, number: int) -> dt.datetime:
        anchor = self.anchor or _MONDAY
        if self.unit in _DAYS:
            local = anchor + dt.timedelta(days=number * self._days)
        else:
            local = _plus_months(anchor, number * self.count * _MONTHS[self.unit])
        return local.replace(tzinfo=zoneinfo.ZoneInfo(self.zone)).astimezone(dt.UTC)


def _plus_months(moment: dt.datetime, months: int) -> dt.datetime:
    """So many months later, on the same day or the month's last."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


ISO_WEEK: Final = TimeWindow()


@dataclass(frozen=True, slots=True)
class Slices:
    """Into which slices a window is cut.

    Attributes:
        length_us: Length of a slice.
        target: Share of a slice that must be good for it to be a good one; None: slices are not
            judged, their shares are averaged (RatioTimeslices).
    """

    length_us: int
    target: float | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """Events that are counted.

    Attributes:
        counted: The counter of good or bad events.
        are_good: Which of them it counts.
        total: The counter of all events.
    """

    counted: str
    are_good: bool
    total: str


@dataclass(frozen=True, slots=True)
class Part:
    """A composite that an objective is a part of.

    Attributes:
        composite: Its name.
        title: Its title.
        service: The service that it is on.
        weight: How much the objective counts in it, relative to its other parts.
    """

    composite: str
    title: str
    service: str
    weight: float


@dataclass(frozen=True, slots=True)
class Objective:
    """What shall hold, of which subjects, over which window.

    Attributes:
        metric: A catalogue metric, of groups without ``.low`` or ``.high``; of events their total.
        threshold: What a good value is compared with, in the metric's unit.
        target: Share of good time, slices or events, 0 to 1.
        where: Attributes of gold/subjects that a subject must have.
        slices: Of Timeslices and RatioTimeslices.
        events: What is counted, instead of time: Occurrences, or slices by their events.
        window: Over which there is one budget.
        labels: ``metadata.labels``.
        match: Patterns of names, by column, that a subject must match; ``!`` excludes. By other
            keys of labels: of a source only the series that match them count.
        unknown: How the verdict takes unknown time.
        op: How a good value compares with the threshold; ``lte`` but for sources and groups.
        composites: The composites that it is a part of.
    """

    name: str
    title: str
    description: str
    level: Level
    metric: str
    threshold: float
    target: float
    where: Mapping[str, float] = field(default_factory=dict)
    slices: Slices | None = None
    events: Events | None = None
    window: TimeWindow = ISO_WEEK
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    match: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    service: str = ""
    unknown: Unknown = "interval"
    op: Op = "lte"
    composites: tuple[Part, ...] = ()

    @property
    def is_at_zero(self) -> bool:
        """Whether just what is above zero is bad: gold/incidents has these stretches."""
        return self.op == "lte" and self.threshold <= 0 and not self.series

    @property
    def metrics(self) -> tuple[str, ...]:
        """Its metric, or the two counters of its events."""
        return (self.events.counted, self.events.total) if self.events else (self.metric,)

    @property
    def kind(self) -> Level:
        """The subjects of its SLIs; clusters and partitions are computed from topics."""
        return "topic" if self.level in {"cluster", "partition"} else self.level

    @property
    def method(self) -> Method:
        """Its budgeting method."""
        if self.slices is None:
            return "GoodSeconds" if self.events is None else "Occurrences"
        return "RatioTimeslices" if self.slices.target is None else "Timeslices"

    @property
    def series(self) -> dict[str, tuple[str, ...]]:
        """The patterns of labels in ``match``; empty: all series of a subject count."""
        return {key: patterns for key, patterns in self.match.items() if key not in NAMES}

    def matches(self, names: Mapping[str, str | None]) -> bool:
        """Whether a subject of these names is meant, by ``match``."""
        return all(matches(names.get(key), self.match[key]) for key in self.match.keys() & NAMES)

    def has_series(self, labels: Mapping[str, str]) -> bool:
        """Whether a series of these labels counts, by ``match``; one that is absent is empty."""
        return all(matches(labels.get(key), patterns) for key, patterns in self.series.items())

    def has(self, labels: Mapping[str, str]) -> bool:
        """Whether it bears all these labels; an empty value stands for any."""
        return all(
            key in self.labels and (not value or value in self.labels[key])
            for key, value in labels.items()
        )
