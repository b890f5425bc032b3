"""Objectives: targets for the share of good time or good events.

An objective chooses subjects and series with patterns of names (``*``, ``?``, ``[abc]``). The
window of its error budget (OpenSLO: timeWindow) is rolling, or aligned with a calendar.
"""

import calendar
import datetime as dt
import re
import warnings
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Literal

from lakehouse.core.periods import Period

_PARTS: Final = re.compile(r"\[!?\]?[^\]]*\]|.", re.DOTALL)
"""Elements of a pattern of ``fnmatchcase``: classes and single characters."""


def matches(name: str | None, patterns: Sequence[str]) -> bool:
    """Return True if a pattern without ``!``, if any, matches a name and no pattern with ``!``."""
    own, (wanted, unwanted) = name or "", _split(patterns)
    if wanted and not any(fnmatchcase(own, one) for one in wanted):
        return False
    return not any(fnmatchcase(own, one) for one in unwanted)


def regexes(patterns: Sequence[str]) -> tuple[str, str]:
    """Return RE2 expressions that a whole name must match, and must not match. Empty: any name."""
    wanted, unwanted = _split(patterns)
    return "|".join(map(_regex, wanted)), "|".join(map(_regex, unwanted))


def _split(patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    unwanted = [one[1:] for one in patterns if one.startswith("!")]
    return [one for one in patterns if not one.startswith("!")], unwanted


def is_regex(pattern: str) -> bool:
    """Return True if RE2 accepts a pattern; a reversed range is invalid."""
    with warnings.catch_warnings():
        # Python warns that the meaning of [||] can change; RE2's will not.
        warnings.simplefilter("ignore", FutureWarning)
        try:
            re.compile(_regex(pattern.removeprefix("!")))
        except re.error:
            return False
    return True


def _regex(pattern: str) -> str:
    made = []
    for part in _PARTS.findall(pattern):
        if len(part) > 1:
            inner = part[1:-1].replace("\\", r"\\").replace("[", r"\[")
            negated, inner = inner.startswith("!"), inner.removeprefix("!")
            inner = inner.replace("]", r"\]").replace("^", r"\^")
            made.append(f"[{'^' if negated else ''}{inner}]")
        else:
            made.append({"*": ".*", "?": "."}.get(part, re.escape(part)))
    return f"(?s:{''.join(made)})"


_DAYS: Final = {"d": 1, "w": 7}
_MONTHS: Final = {"M": 1, "Q": 3, "Y": 12}
LONGEST_DAYS: Final = 366
_MONDAY: Final = dt.datetime(2026, 1, 5)  # noqa: DTZ001 - a local time


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Length and alignment of a window.

    Attributes:
        count: Number of units.
        unit: d, w, M, Q or Y.
        anchor: Local start time of one of the windows. None for a rolling window.
        zone: Time zone of the calendar.
    """

    count: int = 1
    unit: str = "w"
    anchor: dt.datetime | None = _MONDAY
    zone: str = "UTC"

    @property
    def is_rolling(self) -> bool:
        """True if windows end at any instant, not only at calendar boundaries."""
        return self.anchor is None

    @property
    def name(self) -> str:
        """Name such as ``1w`` for ISO weeks, ``28d`` or ``1M``. Other weeks are named in days."""
        at = self.anchor
        on_monday = at is not None and at.weekday() == 0 and at.time() == dt.time()
        is_iso = on_monday and self.zone == "UTC" and self.count == 1
        if self.unit == "w" and not is_iso:
            return f"{7 * self.count}d"
        return f"{self.count}{self.unit}"

    def of(self, period: Period) -> Period:
        """Return the window that a report on a period shows.

        A rolling window ends with the period. A calendar window is the last window that ended
        within the period, otherwise the whole window that contains the end of the period.
        """
        if self.anchor is None:
            return Period(period.end - dt.timedelta(days=self._days), period.end, self.name)
        number = self._number(period.end)
        if self._start(number) > period.start:  # the window before ended at this start
            number -= 1
        return Period(self._start(number), self._start(number + 1), self.name)

    @property
    def _days(self) -> int:
        return self.count * _DAYS[self.unit]

    def _number(self, moment: dt.datetime) -> int:
        """Return the number of the window at an instant, counted from the anchor's window."""
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
    """Return the time some months later, on the same day or the last day of the month."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


ISO_WEEK: Final = TimeWindow()


Level = Literal["cluster", "topic", "partition", "client", "group", "source"]
Method = Literal["GoodSeconds", "Timeslices", "RatioTimeslices", "Occurrences"]
Op = Literal["lte", "lt", "gte", "gt"]
"""Comparison of a good value with the threshold (OpenSLO)."""
Unknown = Literal["interval", "exclude", "good", "bad"]
"""Use of unknown time in a verdict: as an interval, excluded, as good, or as bad."""

NAMES: Final = ("cluster", "topic", "user", "client_id", "group", "source")
"""Keys of ``match`` that are names of a subject. Other keys are labels of its series."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Time slices of a window.

    Attributes:
        length_us: Length of a slice (µs).
        target: Share of good time in a good slice. None means that the shares of slices are
            averaged (RatioTimeslices).
    """

    length_us: int
    target: float | None = None


@dataclass(frozen=True, slots=True)
class Events:
    """Counted events.

    Attributes:
        counted: Counter of good or bad events.
        are_good: True if it counts good events.
        total: Counter of all events.
    """

    counted: str
    are_good: bool
    total: str


@dataclass(frozen=True, slots=True)
class Part:
    """Membership of an objective in a composite.

    Attributes:
        composite: Name of the composite.
        title: Title of the composite.
        service: Service of the composite.
        weight: Weight of the objective, relative to other members.
    """

    composite: str
    title: str
    service: str
    weight: float


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective: condition, subjects and window.

    Attributes:
        metric: Metric of a catalogue, for groups without ``.low`` or ``.high``. Total of events.
        threshold: Threshold of good values, in the metric's unit.
        target: Share of good time, slices or events, 0 to 1.
        where: Required attributes in gold/subjects.
        slices: Slices of Timeslices and RatioTimeslices.
        events: Events to count instead of time, as Occurrences or in slices.
        window: Window of the error budget.
        labels: ``metadata.labels``.
        match: Patterns of names, by column; ``!`` excludes. Other keys are labels: of a source only
            the matching series count.
        unknown: Use of unknown time in the verdict.
        op: Comparison of a good value with the threshold; ``lte`` except for sources and groups.
        composites: Composites that include the objective.
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
        """True if all values above zero are bad: gold/incidents has these intervals."""
        return self.op == "lte" and self.threshold <= 0 and not self.series

    @property
    def metrics(self) -> tuple[str, ...]:
        """Its metric, or the two counters of its events."""
        return (self.events.counted, self.events.total) if self.events else (self.metric,)

    @property
    def kind(self) -> Level:
        """Subject type of its SLIs. Clusters and partitions are computed from topics."""
        return "topic" if self.level in {"cluster", "partition"} else self.level

    @property
    def method(self) -> Method:
        """Budgeting method."""
        if self.slices is None:
            return "GoodSeconds" if self.events is None else "Occurrences"
        return "RatioTimeslices" if self.slices.target is None else "Timeslices"

    @property
    def series(self) -> dict[str, tuple[str, ...]]:
        """Patterns of labels in ``match``. If it is empty, all series of a subject count."""
        return {key: patterns for key, patterns in self.match.items() if key not in NAMES}

    def matches(self, names: Mapping[str, str | None]) -> bool:
        """Return True if ``match`` accepts a subject with these names."""
        return all(matches(names.get(key), self.match[key]) for key in self.match.keys() & NAMES)

    def has_series(self, labels: Mapping[str, str]) -> bool:
        """Return True if ``match`` accepts a series; an absent label is empty."""
        return all(matches(labels.get(key), patterns) for key, patterns in self.series.items())

    def has(self, labels: Mapping[str, str]) -> bool:
        """Return True if the objective has all these labels. An empty value matches any value."""
        return all(
            key in self.labels and (not value or value in self.labels[key])
            for key, value in labels.items()
        )
