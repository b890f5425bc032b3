"""Timelines for a report's charts: one point per window, null where nobody looked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING, Any, Final

from lakehouse import tables
from lakehouse.existence import with_ends
from lakehouse.metrics import LEADERLESS, UNDER_MIN_ISR
from lakehouse.periods import iso, micros
from lakehouse.report.gather import COPY_LAG, DELETE_LAG
from lakehouse.report.sums import BOUNDS, seconds_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse.existence import Subject
    from lakehouse.gold_rows import Row
    from lakehouse.report.gather import Gold

Point = tuple[float | None, ...]
"""A value and its two bounds."""

_SEEN: Final = 0.95
"""Share of a window in which a source must have been read."""

_OF_TOPICS: Final = {
    UNDER_MIN_ISR: "under_min_isr",
    LEADERLESS: "leaderless",
    "kafka.topic.remote_fetch.bytes": "remote_fetch_bytes",
    COPY_LAG: "copy_lag_bytes",
    DELETE_LAG: "delete_lag_bytes",
}
_DRAWN: Final = {
    "under_min_isr": ("partitions", frozenset({"min_isr"})),
    "leaderless": ("partitions", frozenset({"leaders", "metadata_log"})),
    "throttled": ("clients", frozenset({"quotas"})),
    "remote_fetch_bytes": ("By", frozenset({"tiered"})),
    "copy_lag_bytes": ("By", frozenset({"tiered"})),
    "delete_lag_bytes": ("By", frozenset({"tiered"})),
    "lost_offsets": ("{offset}", frozenset({"offsets"})),
}
"""Units, and with which family of beans a timeline is read; one of several is enough."""


def timelines(gold: Gold, subjects: Sequence[Subject], now_us: int) -> list[Row]:
    """All timelines that have a value above zero somewhere, and coverage."""
    seconds = gold.chart_seconds
    read = _read(gold, subjects, now_us, seconds)
    seen = {window: (read.percent(window),) * 3 for window in read.expected}
    told: defaultdict[tuple[str, Any], defaultdict[int, list[Point]]]
    told = defaultdict(lambda: defaultdict(list))
    for name, subject, window, point in _points(gold, seconds):
        told[name, subject][window].append(point)
    found = []
    for name, (unit, families) in _DRAWN.items():
        looked = read.looked(families)
        for subject in sorted(subject for other, subject in told if other == name):
            # Whatever order they come in: the sum is the same.
            points = {
                window: tuple(fsum(part or 0.0 for part in one) for one in zip(*all_, strict=True))
                for window, all_ in told[name, subject].items()
            }
            if any(point[2] for point in points.values()):
                filled = _filled(points, seen, looked)
                found.append({"name": name, "unit": unit, "subject": subject, "points": filled})
    whole = [[iso(window), *point] for window, point in seen.items()]
    return [*found, {"name": "coverage", "unit": "%", "subject": None, "points": whole}]


def _points(gold: Gold, seconds: int) -> Iterator[tuple[str, str | None, int, Point]]:
    """What gold tells: which timeline, whose, its window, and a point to be summed up with others.

    Of time, how many at once on the mean over the window; of what waits, a mean per topic.
    """

    def at_once(row: Row, stem: str) -> Point:
        return tuple((row[f"{stem}{bound}_us"] or 0) / (seconds * 1_000_000) for bound in BOUNDS)

    for row in gold.by_window(tables.TOPICS, seconds, tuple(_OF_TOPICS)):
        name, window = _OF_TOPICS[row["metric"]], row["window"]
        if row["metric"] in (COPY_LAG, DELETE_LAG):
            yield name, row["topic"], window, (seconds_mean(row),) * 3
        else:
            read_back = name == "remote_fetch_bytes"
            point = (row["increase"],) * 3 if read_back else at_once(row, "positive")
            yield name, None, window, point
    for row in gold.by_window(tables.CLIENTS, seconds):
        if row["metric"].endswith(".throttle_time"):
            yield "throttled", None, row["window"], at_once(row, "any")
    for row in gold.by_window(tables.NON_CONSUMED, seconds):
        low, high = row["offsets_low"], row["offsets_high"]
        yield "lost_offsets", row["group"], row["window"], (low, low, high)


def _filled(
    points: Mapping[int, Point], seen: Mapping[int, Point], looked: set[int]
) -> list[list[Any]]:
    """Every window of the period: zero only where all was read and nothing found."""
    filled = []
    for window in sorted({*seen, *points}):
        value, low, high = points.get(window, (0.0, 0.0, 0.0))
        if window not in looked:
            # What was found was there; how much more there was nobody saw.
            value, low, high = (value, low, None) if value else (None, None, None)
        filled.append([iso(window), value, low, high])
    return filled


@dataclass(frozen=True, slots=True)
class _Read:
    """What was to be read in each window and what was; microseconds.

    Attributes:
        expected: For how long of each window of the period which source was to be read.
        families: The families that anybody tried to read, per source.
        ok: How long a family of a source was read, per window.
    """

    expected: Mapping[int, Mapping[str, int]]
    families: Mapping[str, set[str]]
    ok: Mapping[int, Mapping[tuple[str, str], int]]

    def looked(self, families: frozenset[str]) -> set[int]:
        """Windows in which every source was read, but for a scrape or two.

        Args:
            families: One of them is enough. Who was never asked for any of them is not waited for.
        """
        found = set()
        for window, expected in self.expected.items():
            asked = [one for one in expected if families & self.families.get(one, set())]
            ok = self.ok.get(window, {})
            seen = {one: max(ok.get((one, family), 0) for family in families) for one in asked}
            if asked and all(seen[one] >= _SEEN * expected[one] for one in asked):
                found.add(window)
        return found

    def percent(self, window: int) -> float | None:
        """How much of what was to be seen, by the calendar, was."""
        asked = self.expected[window].items()
        expected = sum((len(self.families.get(one, ())) or 1) * us for one, us in asked)
        seen = sum(self.ok.get(window, {}).values())
        return min(100.0, 100 * seen / expected) if expected else None


def _read(gold: Gold, subjects: Sequence[Subject], now_us: int, seconds: int) -> _Read:
    """What gold tells of reading, per window of so many seconds."""
    families: defaultdict[str, set[str]] = defaultdict(set)
    ok: defaultdict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for row in gold.by_window(tables.COVERAGE, seconds):
        families[row["source"]].add(row["family"])
        if row["outcome"] == "ok":
            ok[row["window"]][row["source"], row["family"]] = row["duration_us"]
    size = seconds * 1_000_000
    start, last = micros(gold.period.start), min(micros(gold.period.end), now_us)
    expected: dict[int, dict[str, int]] = {n: {} for n in range(start // size * size, last, size)}
    for one, end in with_ends(subjects):
        until = now_us if end is None else min(end, now_us)
        for window, sources in expected.items() if one.kind == "source" else ():
            if (us := min(until, window + size) - max(one.first_us, window)) > 0:
                sources[str(one.source)] = us
    return _Read(expected, families, ok)
