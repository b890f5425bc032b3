"""A figure of the demo's report beside what really happened."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def stated(row: Mapping[str, Any] | None, low: str, high: str) -> tuple[float, float]:
    """The bounds that a row of the report states, under these names.

    A bound that is null is none: nothing is known on that side. Of what has no row the report says
    that it did not happen.
    """
    if row is None:
        return 0.0, 0.0
    least, most = row[low], row[high]
    return 0.0 if least is None else least, math.inf if most is None else most


def stated_us(row: Mapping[str, Any] | None, low: str, high: str) -> tuple[float, float]:
    """The bounds of a duration; what is stated as unknown may be of it (bench/README.md)."""
    least, most = stated(row, low, high)
    return least, most + (row["unknown_us"] if row else 0)


def nearest(true: tuple[float, float], bounds: tuple[float, float]) -> float:
    """Of a truth that is itself only known to lie between two figures, that nearest to bounds."""
    return min(max(true[0], bounds[0]), true[1])
