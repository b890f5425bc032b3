"""What shall hold for which share of the time, or of events."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from lakehouse.core.error_budget_window import ISO_WEEK, TimeWindow
from lakehouse.core.patterns import matches

Level = Literal["cluster", "topic", "partition", "client", "group", "source"]
Method = Literal["GoodSeconds", "Timeslices", "RatioTimeslices", "Occurrences"]
Op = Literal["lte", "lt", "gte", "gt"]
"""How a good value compares with the threshold (OpenSLO)."""
Unknown = Literal["interval", "exclude", "good", "bad"]
"""How a verdict takes unknown time: both ways, left out, as good or as bad."""

NAMES: Final = ("cluster", "topic", "user", "client_id", "group", "source")
"""Keys of ``match`` that are names of a subject; all others are labels of its series."""


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
