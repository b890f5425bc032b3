"""Timelines for a report's charts: one point per window, null where nobody looked."""

from __future__ import annotations

from collections import defaultdict
from math import fsum
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.periods import iso
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.report.read import read_of
from lakehouse.report.sums import seconds_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold
    from lakehouse.report.read import Read

Point = tuple[float | None, float | None, float | None]
Points = dict[int, Point]

_REMOTE_BYTES: Final = "kafka.topic.remote_fetch.bytes"
_OF_TOPICS: Final = (UNDER_MIN_ISR, LEADERLESS, COPY_LAG, DELETE_LAG, _REMOTE_BYTES)

_TIERED: Final = frozenset({"tiered"})
_FAMILIES: Final = {
    "under_min_isr": frozenset({"min_isr"}),
    "leaderless": frozenset({"leaders", "metadata_log"}),
    "throttled": frozenset({"quotas"}),
    "remote_fetch_bytes": _TIERED,
    "copy_lag_bytes": _TIERED,
    "delete_lag_bytes": _TIERED,
    "lost_offsets": frozenset({"offsets"}),
}
"""With which family of beans a timeline is read; one of several is enough."""


def timelines(gold: Gold, subjects: Sequence[Subject], now_us: int) -> list[Row]:
    """All timelines that have a value above zero somewhere, and coverage."""
    seconds = gold.chart_seconds
    size = seconds * 1_000_000
    topics = gold.by_window(tables.TOPICS, ("metric", "topic"), seconds, _OF_TOPICS)
    clients = gold.by_window(tables.CLIENTS, ("metric", "user", "client_id"), seconds)
    lost = gold.by_window(tables.NON_CONSUMED, ("group",), seconds)
    read = read_of(gold, subjects, now_us, seconds)
    seen = _coverage(read)
    looked = {name: read.looked(families) for name, families in _FAMILIES.items()}
    positive = _bounds("positive", size)
    drawn = [
        _of("under_min_isr", "partitions", _where(topics, UNDER_MIN_ISR), None, positive),
        _of("leaderless", "partitions", _where(topics, LEADERLESS), None, positive),
        _of("throttled", "clients", _throttled(clients), None, _bounds("any", size)),
        _of("remote_fetch_bytes", "By", _where(topics, _REMOTE_BYTES), None, _increase),
        *_each("copy_lag_bytes", _where(topics, COPY_LAG)),
        *_each("delete_lag_bytes", _where(topics, DELETE_LAG)),
        *(
            _of("lost_offsets", "{offset}", [r for r in lost if r["group"] == group], group, _lost)
            for group in sorted({str(row["group"]) for row in lost})
        ),
    ]
    found = [
        {
            "name": name,
            "unit": unit,
            "subject": subject,
            "points": _filled(points, seen, looked[name]),
        }
        for name, unit, subject, points in drawn
        if any(point[2] for point in points.values())
    ]
    whole = [[iso(window), *point] for window, point in sorted(seen.items())]
    return [*found, {"name": "coverage", "unit": "%", "subject": None, "points": whole}]


def _of(
    name: str, unit: str, rows: list[Row], subject: str | None, point: Callable[[Row], Point]
) -> tuple[str, str, str | None, Points]:
    """A timeline: the points of its rows, summed per window in whatever order they come."""
    found: defaultdict[int, list[Point]] = defaultdict(list)
    for row in rows:
        found[row["window"]].append(point(row))
    sums: Points = {}
    for window, points in found.items():
        first, second, third = (fsum(n or 0.0 for n in one) for one in zip(*points, strict=True))
        sums[window] = (first, second, third)
    return name, unit, subject, sums


def _each(name: str, rows: list[Row]) -> list[tuple[str, str, str | None, Points]]:
    """One timeline of bytes per topic, on the mean over the time seen."""

    def mean(row: Row) -> Point:
        value = seconds_mean(row)
        return (value, value, value)

    topics = sorted({str(row["topic"]) for row in rows})
    return [_of(name, "By", [r for r in rows if r["topic"] == t], t, mean) for t in topics]


def _bounds(stem: str, size: int) -> Callable[[Row], Point]:
    """How many at a time, on the mean over the window."""

    def point(row: Row) -> Point:
        value, low, high = ((row[f"{stem}{b}_us"] or 0) / size for b in ("", "_low", "_high"))
        return (value, low, high)

    return point


def _increase(row: Row) -> Point:
    return (row["increase"],) * 3


def _lost(row: Row) -> Point:
    return (row["offsets_low"], row["offsets_low"], row["offsets_high"])


def _where(rows: list[Row], metric: str) -> list[Row]:
    return [row for row in rows if row["metric"] == metric]


def _throttled(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["metric"].endswith(".throttle_time")]


def _filled(points: Points, seen: Points, looked: set[int]) -> list[list[Any]]:
    """Every window of the period: zero only where all was read and nothing found."""
    filled = []
    for window in sorted({*seen, *points}):
        value, low, high = points.get(window, (0.0, 0.0, 0.0))
        if window in looked:
            point: Point = (value, low, high)
        else:  # what was found was there; how much more there was nobody saw
            point = (value, low, None) if value else (None, None, None)
        filled.append([iso(window), *point])
    return filled


def _coverage(read: Read) -> Points:
    """Per cent of what was to be seen, by the calendar."""
    ok: defaultdict[int, int] = defaultdict(int)
    for (window, _, _), us in read.ok.items():
        ok[window] += us
    points: Points = {}
    for window in read.windows:
        expected = sum(
            (len(read.families.get(one, ())) or 1) * read.expected(one, window)
            for one in read.lives
        )
        percent = min(100.0, 100 * ok[window] / expected) if expected else None
        points[window] = (percent, percent, percent)
    return points
