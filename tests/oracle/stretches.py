"""gold/incidents and gold/readings in plain Python: rows that touch are one interval."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from tests.oracle.rows import HOUR, Run, Scrapes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tests.oracle.plain import Key, Rows
    from tests.oracle.rows import Bronze

Piece = TypeVar("Piece", Run, Scrapes)


def incidents(bronze: Bronze, watched: Collection[str]) -> Rows:
    """Return intervals above zero by cluster, hour, metric, subject, source and start.

    Args:
        bronze: The rows.
        watched: Names in bronze of watched metrics and metrics of objectives.
    """
    grouped: defaultdict[Key, list[Run]] = defaultdict(list)
    for run in bronze.usable():
        if run.metric in watched and run.positive:
            subject = (run.topic, run.partition, run.user, run.client_id, run.group)
            key = (run.cluster, _hour(run), run.metric, run.level, *subject, run.source)
            grouped[key].append(run)
    return {
        (*key, min(run.start for run in stretch)): _incident(stretch)
        for key, own in grouped.items()
        for stretch in _stretches(own)
    }


def _incident(runs: list[Run]) -> dict[str, Any]:
    start, end = min(run.start for run in runs), max(run.end for run in runs)
    values = [run.value or 0.0 for run in runs]
    return {
        "ended_at": end,
        "lead_us": min(run.lead_edge for run in runs if run.start == start),
        "tail_us": _tail(runs, end),
        "worst": max(values),
        "total": float(sum(map(Fraction, values))),
        "runs": len(runs),
        "known_wrong": any("known_wrong" in run.flags for run in runs),
    }


def _tail(runs: list[Run], end: int) -> int:
    """Return how long before its end an interval may have ended.

    If a run may not have been above zero at all, the runs that end at its start count. Of several
    runs with one end the smallest bound counts.
    """

    def behind(run: Run) -> int:
        length = run.end - run.start
        edge = min(run.tail_edge, length)
        return edge if edge < length else edge + _tail(runs, run.start)

    return min((behind(run) for run in runs if run.end == end), default=0)


def readings(bronze: Bronze) -> Rows:
    """Return intervals of attempts by cluster, hour, source, family, outcome and start."""
    grouped: defaultdict[Key, list[Scrapes]] = defaultdict(list)
    for row in bronze.accounts():
        grouped[row.cluster, _hour(row), row.source, row.family, row.outcome].append(row)
    return {
        (*key, min(row.start for row in stretch)): _reading(stretch)
        for key, own in grouped.items()
        for stretch in _stretches(own)
    }


def _reading(rows: list[Scrapes]) -> dict[str, Any]:
    """Return the figures; the error is that of the first row with an error."""
    errors = [(row.start, row.error) for row in rows if row.error is not None]
    return {
        "ended_at": max(row.end for row in rows),
        "scrapes": sum(row.scrapes for row in rows),
        "seconds_max": max(row.seconds_max for row in rows),
        "interval_us": max(row.interval for row in rows),
        "error": min(errors)[1] if errors else None,
    }


def _stretches(rows: Iterable[Piece]) -> list[list[Piece]]:
    """Return groups of rows that touch or overlap."""
    found: list[list[Piece]] = []
    end = None
    for row in sorted(rows, key=lambda row: (row.start, row.end)):
        if end is None or row.start > end:
            found.append([])
            end = row.end
        found[-1].append(row)
        end = max(end, row.end)
    return found


def _hour(row: Run | Scrapes) -> int:
    return row.start - row.start % HOUR
