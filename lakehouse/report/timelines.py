"""Timelines for a report's charts: one point per window, null where nobody looked."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from lakehouse import grains, tables
from lakehouse.existence import with_ends
from lakehouse.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.periods import iso, micros
from lakehouse.report.gather import COPY_LAG, DELETE_LAG

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakehouse.existence import Subject
    from lakehouse.report.gather import Gold, Row

Point = tuple[float | None, float | None, float | None]
Points = dict[int, Point]

_DAY_SECONDS: Final = 86_400
_REMOTE_BYTES: Final = "kafka.topic.remote_fetch.bytes"
_OF_TOPICS: Final = (UNDER_MIN_ISR, LEADERLESS, COPY_LAG, DELETE_LAG, _REMOTE_BYTES)


def timelines(gold: Gold, subjects: Sequence[Subject], now_us: int) -> list[Row]:
    """All timelines that have a value above zero somewhere, and coverage."""
    grain = gold.chart_grain
    size = (_DAY_SECONDS if grain == grains.DAY else grains.parse_window(grain)) * 1_000_000
    topics = gold.by_window(tables.TOPICS, ("metric", "topic"), grain, _OF_TOPICS)
    clients = gold.by_window(tables.CLIENTS, ("metric", "user", "client_id"), grain)
    lost = gold.by_window(tables.NON_CONSUMED, ("group",), grain)
    seen = _coverage(gold, subjects, now_us, grain, size)
    looked = {window for window, point in seen.items() if point[0]}
    positive = _bounds("positive", size)
    drawn = [
        _of("under_min_isr", "partitions", _where(topics, UNDER_MIN_ISR), None, positive),
        _of("leaderless", "partitions", _where(topics, LEADERLESS), None, positive),
        _of("throttled", "clients", _throttled(clients), None, _bounds("any", size)),
        _of("remote_fetch_bytes", "By", _where(topics, _REMOTE_BYTES), None, _increase),
        *_each("copy_lag_bytes", _where(topics, COPY_LAG), size),
        *_each("delete_lag_bytes", _where(topics, DELETE_LAG), size),
        *(
            _of("lost_offsets", "{offset}", [r for r in lost if r["group"] == group], group, _lost)
            for group in sorted({str(row["group"]) for row in lost})
        ),
    ]
    found = [
        {"name": name, "unit": unit, "subject": subject, "points": _filled(points, seen, looked)}
        for name, unit, subject, points in drawn
        if any(point[2] for point in points.values())
    ]
    whole = [[iso(window), *point] for window, point in sorted(seen.items())]
    return [*found, {"name": "coverage", "unit": "%", "subject": None, "points": whole}]


def _of(
    name: str, unit: str, rows: list[Row], subject: str | None, point: Callable[[Row], Point]
) -> tuple[str, str, str | None, Points]:
    """A timeline: the points of its rows, summed per window."""
    sums: defaultdict[int, Point] = defaultdict(lambda: (0.0, 0.0, 0.0))
    for row in rows:
        added = zip(sums[row["window"]], point(row), strict=True)
        first, second, third = ((a or 0.0) + (b or 0.0) for a, b in added)
        sums[row["window"]] = (first, second, third)
    return name, unit, subject, dict(sums)


def _each(name: str, rows: list[Row], size: int) -> list[tuple[str, str, str | None, Points]]:
    """One timeline of mean bytes per topic."""

    def mean(row: Row) -> Point:
        value = (row["value_seconds"] or 0.0) / (size / 1e6)
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
    """Every window of the period: zero where somebody looked and found nothing, else null."""
    filled = []
    for window in sorted({*seen, *points}):
        nothing: Point = (0.0, 0.0, 0.0) if window in looked else (None, None, None)
        filled.append([iso(window), *points.get(window, nothing)])
    return filled


def _coverage(
    gold: Gold, subjects: Sequence[Subject], now_us: int, grain: str, size: int
) -> Points:
    """Per cent of what was to be seen, by the calendar."""
    rows = gold.by_window(tables.COVERAGE, ("source", "family", "outcome"), grain)
    families: defaultdict[str, set[str]] = defaultdict(set)
    ok: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        families[row["source"]].add(row["family"])
        ok[row["window"]] += row["duration_us"] if row["outcome"] == "ok" else 0
    lives = [
        (one.first_us, now_us if end is None else min(end, now_us), len(families[one.source]) or 1)
        for one, end in with_ends(subjects)
        if one.kind == "source" and one.source is not None
    ]
    points: Points = {}
    last = min(micros(gold.period.end), now_us)
    for window in range(micros(gold.period.start) // size * size, last, size):
        expected = sum(
            count * max(0, min(end, window + size) - max(first, window))
            for first, end, count in lives
        )
        percent = min(100.0, 100 * ok[window] / expected) if expected else None
        points[window] = (percent, percent, percent)
    return points
