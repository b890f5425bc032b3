"""A figure of the demo's report beside what really happened."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """Bounds that a report gives, and the truth, in the same unit.

    Attributes:
        name: What it is of, for people.
        low: Lower bound of the report.
        high: Upper bound; the report is exact where both are equal.
        true: What clients, the plugin or the metadata log counted; never what a bean said.
    """

    name: str
    low: float
    high: float
    true: float

    @property
    def holds(self) -> bool:
        """Whether the bounds hold the truth."""
        return self.low <= self.true <= self.high


def nearest(true: tuple[float, float], bounds: tuple[float, float]) -> float:
    """Of a truth that is itself only known to lie between two figures, that nearest to bounds."""
    return min(max(true[0], bounds[0]), true[1])
