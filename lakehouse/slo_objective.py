"""What shall hold for which share of the time, or of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Literal

from lakehouse.slo_window import ISO_WEEK, TimeWindow

Level = Literal["cluster", "topic", "partition", "client", "group", "source"]
Method = Literal["GoodSeconds", "Timeslices", "RatioTimeslices", "Occurrences"]

NAMES: Final = ("cluster", "topic", "user", "client_id", "group", "source")
"""What a subject's names are called under ``match``."""


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
class Objective:
    """What shall hold, of which subjects, over which window.

    Attributes:
        metric: A catalogue metric, of groups without ``.low`` or ``.high``; of events their total.
        above: The metric is bad above this value, in the metric's unit.
        target: Share of good time, slices or events, 0 to 1.
        where: Attributes of gold/subjects that a subject must have.
        slices: Of Timeslices and RatioTimeslices.
        events: What is counted, instead of time: Occurrences, or slices by their events.
        window: Over which there is one budget.
        labels: ``metadata.labels``.
        match: Patterns of names (see ``NAMES``) that a subject must match; ``!`` excludes.
    """

    name: str
    title: str
    description: str
    level: Level
    metric: str
    above: float
    target: float
    where: Mapping[str, float] = field(default_factory=dict)
    slices: Slices | None = None
    events: Events | None = None
    window: TimeWindow = ISO_WEEK
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    match: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    service: str = ""

    @property
    def kind(self) -> Level:
        """Of which subjects it is told at first: topics', of clusters and of partitions."""
        return "topic" if self.level in {"cluster", "partition"} else self.level

    @property
    def method(self) -> Method:
        """Its budgeting method."""
        if self.slices is None:
            return "GoodSeconds" if self.events is None else "Occurrences"
        return "RatioTimeslices" if self.slices.target is None else "Timeslices"

    def matches(self, names: Mapping[str, str | None]) -> bool:
        """Whether a subject of these names is meant, by ``match``."""
        return all(_matches(names.get(key), told) for key, told in self.match.items())

    def has(self, labels: Mapping[str, str]) -> bool:
        """Whether it bears all these labels; an empty value stands for any."""
        return all(
            key in self.labels and (not value or value in self.labels[key])
            for key, value in labels.items()
        )


def _matches(name: str | None, patterns: Sequence[str]) -> bool:
    """Whether a name is meant: by one pattern, if any is without ``!``, and by none with it."""
    own = name or ""
    wanted = [one for one in patterns if not one.startswith("!")]
    unwanted = (one[1:] for one in patterns if one.startswith("!"))
    if wanted and not any(fnmatchcase(own, one) for one in wanted):
        return False
    return not any(fnmatchcase(own, one) for one in unwanted)
