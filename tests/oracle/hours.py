"""Rows per hour from rows per window, with the aggregate of each column (``Column.over``)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.oracle.rows import HOUR

if TYPE_CHECKING:
    from lakehouse.tables import Column, Table
    from tests.oracle.plain import Key, Rows

Windows = dict[int, dict[str, Any]]
"""Figures of one subject in an hour, by window."""


def hours(table: Table, finest: Rows) -> Rows:
    """Return rows per hour; keys start with cluster and hour, as keys of windows."""
    grouped: defaultdict[Key, Windows] = defaultdict(dict)
    for (cluster, window, *rest), figures in finest.items():
        grouped[(cluster, window - window % HOUR, *rest)][window] = figures
    return {key: _combined(table, key[1], own) for key, own in grouped.items()}


def complete(table: Table, figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of all measures of a table, with the mean; None without a report."""
    found = {column.name: figures.get(column.name) for column in table.measures}
    return {**found, "value_mean": mean(found)} if "value_mean" in found else found


def mean(figures: dict[str, Any]) -> float | None:
    observed, seconds = figures["series_seen_us"], figures["value_seconds"]
    return seconds / (observed / 1e6) if observed and seconds is not None else None


def folded(hourly: Rows, finest: Rows) -> Rows:
    """Return windows of gold/sli, only for subjects and hours that were not completely good."""
    return {
        key: figures
        for key, figures in finest.items()
        if not good_throughout(hourly[(key[0], key[1] - key[1] % HOUR, *key[2:])])
    }


def unfolded(hourly: Rows, finest: Rows, window_us: int) -> Rows:
    """Return all windows again, as readers of gold/sli do from hours and windows."""
    found = dict(finest)
    for (cluster, hour, *rest), figures in hourly.items():
        if good_throughout(figures):
            good = {**figures, "good_us": window_us}
            if figures["seen_us"] is not None:
                good["seen_us"] = window_us
            for window in range(hour, hour + HOUR, window_us):
                found[(cluster, window, *rest)] = good
    return found


def good_throughout(figures: dict[str, Any]) -> bool:
    """Return True if a whole hour was good; its upper bound can still be bad."""
    return figures["good_us"] == HOUR and not figures["bad_high_us"]


def _combined(table: Table, hour: int, own: Windows) -> dict[str, Any]:
    return complete(table, {column.name: _one(column, hour, own) for column in table.measures})


def _one(column: Column, hour: int, own: Windows) -> Any:
    """Return an hour's figure of a column; unknown windows do not count."""
    known = [row[column.name] for row in own.values() if row.get(column.name) is not None]
    if not known or column.over == "mean":
        return None
    if column.over == "first":  # of the window that begins with the hour: others lie within it
        return own.get(hour, {}).get(column.name) or 0
    return {"sum": sum, "max": max, "min": min, "any": any}[column.over](known)
