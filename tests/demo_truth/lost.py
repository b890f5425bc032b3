"""What expired before groups had committed it, by their own commits and the starts of the log."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tests.demo_truth.figure import Figure, nearest, stated

if TYPE_CHECKING:
    from collections.abc import Iterator


def figures(truth: Any, report: Any) -> Iterator[Figure]:
    """Offsets of each group and partition; a group without a row is said to have lost nothing."""
    groups = report["lost_before_read"]["groups"]
    for fact in truth.get("expired", ()):
        bounds = (0.0, math.inf) if groups is None else _bounds(groups, fact)
        name = f"{fact['group']}, {fact['topic']}-{fact['partition']}: offsets lost"
        true = nearest((fact["offsets"], fact["offsets_most"]), bounds)
        yield Figure(name, *bounds, true)


def _bounds(groups: Any, fact: Any) -> tuple[float, float]:
    """The sum of its rows; one whose upper bound is null has none."""
    key = ("group", "topic", "partition")
    rows = [row for row in groups if all(row[name] == fact[name] for name in key)]
    bounds = [stated(row, "offsets_low", "offsets_high") for row in rows]
    return sum(low for low, _ in bounds), sum(high for _, high in bounds)
