"""Timelines for a report's charts: one point per window, null without full coverage."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from typing import Annotated, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core import metrics
from lakehouse.core.metrics import COPY_LAG, DELETE_LAG, families
from lakehouse.core.periods import iso, micros, overlap
from lakehouse.core.subjects import with_ends
from lakehouse.engines.gold_reader import Row, is_same
from lakehouse.engines.relation import is_one_of
from lakehouse.report.facts.fields import Means
from lakehouse.report.facts.gold import SEEN, Gold
from lakehouse.report.facts.gold_figures import duration, hidden_spans
from lakehouse.report.facts.sections.consumer_groups import ROUNDED_UP
from lakehouse.report.facts.sections.golden_signals import ANSWERS, GOOD, P99, TRAFFIC, error_of
from lakehouse.report.facts.sections.monitoring import COLUMNS, TABLES, OwnMetrics, mean

Point = tuple[float | None, ...]
"""A value and its two bounds."""

_MOST_POINTS: Final = 500
_LENGTHS: Final = (300, 3600, 86_400)
"""Lengths of a timeline's windows, in addition to a finest window, seconds."""

_MOST_OWN: Final = 3
_OWN_SUBJECTS: Final = 2
"""Maximum number of subjects of an own metric."""

_GREATEST: Final = {"produce_p99", "fetch_p99", "consumer_lag"}
"""Timelines whose point is the greatest value of the window, not a sum of brokers or topics."""

_DRAWN: Final = {
    "under_min_isr": ("partitions", metrics.UNDER_MIN_ISR),
    "leaderless": ("partitions", metrics.LEADERLESS),
    "throttled": ("clients", "kafka.client.produce.throttle_time"),
    "remote_fetch_bytes": ("By", "kafka.topic.remote_fetch.bytes"),
    "copy_lag_bytes": ("By", COPY_LAG),
    "delete_lag_bytes": ("By", DELETE_LAG),
    "consumer_lag": ("{offset}", metrics.GROUP_LAG),
    "lost_offsets": ("{offset}", "kafka.group.non_consumed.low"),
    "error_answers": ("{error}", ANSWERS["produce"]),
    "produce_p99": ("ms", P99["produce"]),
    "fetch_p99": ("ms", P99["fetch"]),
    "bytes_in": ("By", TRAFFIC["bytes_in"]),
    "bytes_out": ("By", TRAFFIC["bytes_out"]),
}
"""Units, and the metric whose families a timeline is read with; one of them is enough."""

_COUNTERS: Final = {
    "kafka.topic.remote_fetch.bytes", ANSWERS["produce"], TRAFFIC["bytes_in"], TRAFFIC["bytes_out"]
}  # fmt: skip
_NAMES: Final = {metric: name for name, (_, metric) in _DRAWN.items()}
_OF_ONE_TOPIC: Final = (COPY_LAG, DELETE_LAG)
_OF_ALL_TOPICS: Final = tuple(
    one
    for one in _NAMES
    if metrics.known()[one].level in {"partition", "topic"} and one not in _OF_ONE_TOPIC
)
_THROTTLED: Final = is_one_of("r.metric", [one.metric for one in metrics.WATCHED_OF["client"]])


class Timeline(NamedTuple):
    """Values of one figure over time."""

    name: Annotated[str, Means("figure, or the name of an own metric")]
    unit: Annotated[str, Means("unit of the values (UCUM)")]
    subject: Annotated[str | None, Means("topic, client or group; empty: the whole cluster")]
    points: Annotated[list[list[Any]], Means(
        "start of a window, value and its two bounds; null: not all "
        "sources were observed")]  # fmt: skip


def timelines(gold: Gold, own: OwnMetrics) -> list[Timeline]:
    """Return timelines with a value above zero, timelines of own metrics, and coverage."""
    seconds = window_seconds(gold)
    reading = _reading(gold, seconds)
    parts: defaultdict[tuple[str, Any], defaultdict[int, list[Point]]]
    parts = defaultdict(lambda: defaultdict(list))
    for name, subject, window, point in _points(gold, seconds):
        parts[name, subject][window].append(point)
    drawn = []
    for name, (unit, metric) in _DRAWN.items():
        read = reading.windows_read(families(metric))
        for subject in sorted(subject for other, subject in parts if other == name):
            # fsum: the sum does not depend on the order of rows.
            together = max if name in _GREATEST else fsum
            points = {
                window: tuple(
                    together(part or 0.0 for part in one) for one in zip(*all_, strict=True)
                )
                for window, all_ in parts[name, subject].items()
            }
            if any(point[2] for point in points.values()):
                windows = sorted({*reading.expected, *points})
                if metric in _COUNTERS:
                    read = read - _hiding(gold, metric, windows, seconds)
                filled = _filled(points, windows, read)
                drawn.append(Timeline(name, unit, subject, filled))
    whole = [[iso(window), *(reading.percent(window),) * 3] for window in reading.expected]
    drawn += _of_own(gold, own, seconds, reading)
    return [*drawn, Timeline("coverage", "%", None, whole)]


def _of_own(gold: Gold, own: OwnMetrics, seconds: int, reading: "_Reading") -> Iterator[Timeline]:
    """Yield means of gauges and increases of counters, of the worst subjects of own metrics."""
    for one in [one for one in own.metrics if one.own][:_MOST_OWN]:
        table, read = TABLES[one.level], reading.windows_read(frozenset(one.families))
        names = {column: COLUMNS[column] for column in table.keys if column in COLUMNS}
        is_counter = "counter" in one.kind
        windows = sorted(reading.expected) if is_counter else []
        hiding = _hiding(gold, one.metric, windows, seconds)
        for subject in one.worst[:_OWN_SUBJECTS]:
            only = " AND ".join(
                is_same(f"r.{column}", getattr(subject, name)) for column, name in names.items()
            )
            rows = gold.by_window(table, seconds, (one.metric,), only)
            values = {
                row["window_start"]: mean(row) if row["increase"] is None else row["increase"]
                for row in rows
            }
            # Gold has no row of a client while it is zero; for others that is unknown.
            zero = 0.0 if table is tables.CLIENTS else None
            points = {
                window: values.get(window, zero if window in read else None)
                for window in reading.expected
            }
            whole = [
                [iso(window), point, point, None if window in hiding else point]
                for window, point in points.items()
            ]
            label = " ".join(filter(None, (getattr(subject, name) for name in names.values())))
            yield Timeline(one.metric, one.unit, label, whole)


def window_seconds(gold: Gold) -> int:
    """Return the length of a timeline's windows, the shortest that a chart can show, seconds.

    A period of months in a time zone other than UTC is not whole days, and gets more points.
    """
    ends = [micros(end) for end in (gold.period.start, gold.period.end)]
    # A window that crosses an end of the period would be drawn as not known there.
    fitting = [
        seconds
        for seconds in (gold.window_seconds, *_LENGTHS)
        if seconds % gold.window_seconds == 0
        and not any(end % (seconds * 1_000_000) for end in ends)
    ]
    length = (gold.period.end - gold.period.start).total_seconds()
    return next((size for size in fitting if length / size <= _MOST_POINTS), fitting[-1])


def _points(gold: Gold, seconds: int) -> Iterator[tuple[str, str | None, int, Point]]:
    """Yield name and subject of a timeline, a window, and a point that is joined with others.

    Times become the mean number of series at one instant. A lag is the greatest of the window.
    """

    def at_once(row: Row, stem: str) -> Point:
        return tuple((us or 0) / (seconds * 1_000_000) for us in duration(row, stem))

    for row in gold.by_window(tables.TOPICS, seconds, _OF_ONE_TOPIC):
        most = row["max_total"] or 0.0
        yield _NAMES[row["metric"]], row["topic"], row["window_start"], (most,) * 3
    for row in gold.by_window(tables.TOPICS, seconds, _OF_ALL_TOPICS, keys=("metric",)):
        name, window = _NAMES[row["metric"]], row["window_start"]
        if row["increase"] is not None:
            yield name, None, window, (row["increase"],) * 3
        else:
            yield name, None, window, at_once(row, "series_affected")
    for row in gold.by_window(tables.CLIENTS, seconds, only=_THROTTLED, keys=()):
        yield "throttled", None, row["window_start"], at_once(row, "affected")
    for row in gold.by_window(tables.CONSUMER_LAG, seconds):
        most = row["records_max"] or 0.0
        yield (
            "consumer_lag",
            row["consumer_group"],
            row["window_start"],
            (most, most / ROUNDED_UP, most),
        )
    yield from _of_brokers(gold, seconds)
    for row in gold.by_window(tables.LOST_OFFSETS, seconds):
        low, high = row["offsets_low"], row["offsets_high"]
        yield "lost_offsets", row["consumer_group"], row["window_start"], (low, low, high)


def _of_brokers(gold: Gold, seconds: int) -> Iterator[tuple[str, str | None, int, Point]]:
    """Yield the same for the answers of brokers."""
    for row in gold.by_window(tables.SOURCES, seconds, tuple(P99.values())):
        if row["value_max"] is not None:
            yield _NAMES[row["metric"]], None, row["window_start"], (row["value_max"],) * 3
    for row in gold.by_window(tables.LABELLED, seconds, tuple(ANSWERS.values())):
        if error_of(row["labels"]) != GOOD:
            yield "error_answers", None, row["window_start"], (row["increase"],) * 3


def _hiding(gold: Gold, metric: str, windows: Sequence[int], seconds: int) -> set[int]:
    """Return windows in which a counter may have risen by counts that no reading shows."""
    spans = hidden_spans(gold, metric)
    return {
        at for at in windows if any(overlap(span, (at, at + seconds * 1_000_000)) for span in spans)
    }


def _filled(points: Mapping[int, Point], windows: Sequence[int], read: set[int]) -> list[list[Any]]:
    """Return every window of the period; zero only if all was read and nothing found."""
    filled = []
    for window in windows:
        value, low, high = points.get(window, (0.0, 0.0, 0.0))
        if window not in read:
            # An observed value is real, but the true value may be higher.
            value, low, high = (value, low, None) if value else (None, None, None)
        filled.append([iso(window), value, low, high])
    return filled


class _Reading(NamedTuple):
    """Expected and observed time of sources in each window; microseconds.

    Attributes:
        expected: Expected time of each source, by window.
        families: Families that an agent tried to read, by source.
        ok: Observed time of a family of a source, by window.
    """

    expected: Mapping[int, Mapping[str, int]]
    families: Mapping[str, set[str]]
    ok: Mapping[int, Mapping[tuple[str, str], int]]

    def windows_read(self, families: frozenset[str]) -> set[int]:
        """Return windows in which every source was read, except for a scrape or two.

        Args:
            families: One of them is enough; sources without any of them are left out.
        """
        windows = set()
        for window, expected in self.expected.items():
            sources = [one for one in expected if families & self.families.get(one, set())]
            ok = self.ok.get(window, {})
            seen = {one: max(ok.get((one, family), 0) for family in families) for one in sources}
            if sources and all(seen[one] >= SEEN * expected[one] for one in sources):
                windows.add(window)
        return windows

    def percent(self, window: int) -> float | None:
        """Return the coverage of all families in a window, percent."""
        sources = self.expected[window].items()
        expected = sum((len(self.families.get(one, ())) or 1) * us for one, us in sources)
        seen = sum(self.ok.get(window, {}).values())
        return min(100.0, 100 * seen / expected) if expected else None


def _reading(gold: Gold, seconds: int) -> _Reading:
    """Return expected and observed time, per window of ``seconds``."""
    families: defaultdict[str, set[str]] = defaultdict(set)
    ok: defaultdict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for row in gold.by_window(tables.COVERAGE, seconds):
        families[row["source"]].add(row["family"])
        if row["outcome"] == "ok":
            ok[row["window_start"]][row["source"], row["family"]] = row["outcome_us"]
    size = seconds * 1_000_000
    start, last = micros(gold.period.start), min(micros(gold.period.end), gold.now_us)
    expected: dict[int, dict[str, int]] = {n: {} for n in range(start // size * size, last, size)}
    for subject, end_us in with_ends(gold.subjects):
        until = gold.now_us if end_us is None else min(end_us, gold.now_us)
        for window, sources in expected.items() if subject.kind == "source" else ():
            if (us := min(until, window + size) - max(subject.first_us, window)) > 0:
                sources[str(subject.source)] = us
    return _Reading(expected, families, ok)
