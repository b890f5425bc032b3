"""What is asked of gold: objectives, and of what time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lakehouse import slices as cuts
from lakehouse.existence import Subject
from lakehouse.periods import Period, micros
from lakehouse.slo_objective import Objective, Slices
from lakehouse.spans import Span, overlap

Key = tuple[str | None, ...]
Named = tuple[str, str, Key]
"""Cluster, objective and subject."""

WHOLE: Final = "period"
"""The name of the range that is the period."""


class Living(NamedTuple):
    """A subject, and when it existed."""

    subject: Subject
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Asked:
    """Objectives that are alike but for what they are of, and of what time they are asked.

    Attributes:
        slices: Those of all these objectives.
        period: Whole windows.
        lengths: Further ranges that end at ``until_us``, by name, microseconds.
        until_us: An edge of windows.
    """

    objectives: tuple[Objective, ...]
    slices: Slices | None
    period: Period
    lengths: Mapping[str, int] = field(default_factory=dict)
    until_us: int = 0

    def ranges(self, window_us: int) -> dict[str, Span]:
        """The period, and the lengths that are made of whole windows or slices; microseconds."""
        start = micros(self.period.start)
        found = {WHOLE: (start, micros(self.period.end))}
        size = self.size_us(window_us)
        until = start + (self.until_us - start) // size * size
        for name, length in self.lengths.items():
            if length % size == 0:
                found[name] = (until - length, until)
        return found

    def size_us(self, window_us: int) -> int:
        """What is judged at once."""
        return window_us if self.slices is None else cuts.size(self.slices, window_us)

    def expected_us(self, within: Span, spans: Sequence[Span], window_us: int) -> int:
        """Time in which somebody is expected to be good within a range, in slices if it is cut."""
        clipped = [common for span in spans if (common := overlap(span, within))]
        if self.slices is None:
            return sum(e - s for s, e in clipped)
        return cuts.expected_us(self.slices, window_us, within[0], clipped)
