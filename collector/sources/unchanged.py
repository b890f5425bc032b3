"""Hands over the same set again while nothing changed, so that a quiet scrape costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.samples import Series


class Unchanged:
    """The last set of series per metric."""

    def __init__(self) -> None:
        self._sets: dict[str, frozenset[Series]] = {}

    def same(self, metric: str, series: frozenset[Series]) -> frozenset[Series]:
        """The set handed over last for this metric, if this one equals it."""
        before = self._sets.get(metric)
        if before == series:
            return before
        self._sets[metric] = series
        return series
