"""Objectives: targets for the share of good time or good events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from lakehouse.core.error_budget_window import ISO_WEEK, TimeWindow
from lakehouse.core.patterns import matches

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
