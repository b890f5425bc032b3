"""The lanes of a report: minutes, sums and maxima of each hour, from its facts.

An hour that was not read has no value. Nothing here is a mean: the worst minute counts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from lakehouse.core import display, periods
from lakehouse.core.spans import Span, overlap, union
from lakehouse.report.charts.lanes import Bucket, Lane
from lakehouse.report.figures import Facts, Row, span_of

_MOST: Final = 168
"""Bars of a lane; a longer period has longer ones."""

_MOST_LANES: Final = 8
_FLOOR_PERCENT: Final = 50.0
_MINUTE: Final = 60_000_000
_HOUR: Final = 60 * _MINUTE
_UNITS: Final = (
    (24 * _HOUR, "day"), (_HOUR, "hour"), (_MINUTE, "minute"), (1_000_000, "second"),
    (1, "microsecond"),
)  # fmt: skip

Values = Mapping[int, float | None]
"""A value for the start of each bucket; None: not known."""


class OfEvents(NamedTuple):
    """A lane with the bad minutes of events of some kinds."""

    name: str
    about: str
    kinds: frozenset[str]


class OfTimeline(NamedTuple):
    """A lane of a timeline.

    Attributes:
        name: Its name.
        about: What one bar is.
        timeline: Name in the facts' ``timelines``.
        write: The value with its unit.
        joined: How values of one bar become one: ``sum`` or ``max``.
        is_bad: Whether more is worse.
    """

    name: str
    about: str
    timeline: str
    write: Callable[[float], str]
    joined: Callable[[Iterable[float]], float]
    is_bad: bool


def _count(noun: str) -> Callable[[float], str]:
    return lambda value: display.plural(round(value), noun)


LANES: Final[tuple[OfEvents | OfTimeline, ...]] = (
    OfEvents("Unavailable", "with a partition under min ISR or leaderless",
             frozenset({"availability"})),
    OfTimeline("Failed requests", "produce and fetch", "error_answers", _count("request"), sum,
               is_bad=True),
    OfEvents("Clients throttled", "with a throttled client", frozenset({"throttling"})),
    OfTimeline("Messages lost unread", "at most", "lost_offsets", _count("message"), sum,
               is_bad=True),
    OfTimeline("Consumer lag", "of a group", "consumer_lag", _count("record"), max, is_bad=True),
    OfTimeline("Waiting for upload", "of a topic", "copy_lag_bytes", display.size, max,
               is_bad=True),
    OfTimeline("Produce latency, p99", "of the slowest broker", "produce_p99",
               display.milliseconds, max, is_bad=False),
    OfTimeline("Read from tiered storage", "", "remote_fetch_bytes", display.size, sum,
               is_bad=False),
    OfTimeline("Written by producers", "", "bytes_in", display.size, sum, is_bad=False),
)  # fmt: skip
"""Most important first; a lane without a value above zero is not drawn."""


class Steps(NamedTuple):
    """The buckets of all lanes.

    Attributes:
        spans: In order, cut to the period; without those that are still to come.
        length: The length of each, microseconds.
    """

    spans: tuple[Span, ...]
    length: int

    @property
    def words(self) -> str:
        """The length of one in words: ``one hour``."""
        unit, noun = next(
            (unit, noun) for unit, noun in _UNITS if self.length % unit == 0 or unit == 1
        )
        number = self.length // unit
        return f"one {noun}" if number == 1 else f"{number} {noun}s"

    def title(self, week: str) -> str:
        """Return the title of all lanes.

        Args:
            week: Name of the ISO week that the period is; empty: it is no week.
        """
        is_hourly = week and self.length == _HOUR
        return "The week, hour by hour" if is_hourly else f"The period in steps of {self.words}"


def steps_of(facts: Facts, to: int) -> Steps:
    """Return the buckets: those of the facts' timelines, joined where they are too many.

    Args:
        facts: The report's facts.
        to: Until when the period can be observed, microseconds.
    """
    start, end = span_of(facts, "from", "to")
    starts = [_start(point) for point in _coverage(facts)]
    finest = min((b - a for a, b in zip(starts, starts[1:], strict=False)), default=end - start)
    length = finest * -(-(end - start) // (finest * _MOST))
    first = min(starts, default=start)
    spans = (overlap((at, at + length), (start, to)) for at in range(first, to, length))
    return Steps(tuple(filter(None, spans)), length)


def lanes_of(facts: Facts, steps: Steps) -> list[Lane]:
    """Return the lanes that have a value above zero, and at last what was not observed."""
    missing = _not_observed(facts, steps)
    unread = {at for at, value in missing.items() if value is None or value > _FLOOR_PERCENT}
    drawn = [lane for spec in LANES if (lane := _lane(spec, facts, steps, unread))]
    coverage = _made("Not observed", "of the expected observations", False, missing, steps, _share)
    return [*drawn[: _MOST_LANES - 1], *([coverage] if coverage else [])]


def planned_of(facts: Facts) -> list[Span]:
    """Return planned maintenance in the period, microseconds."""
    within = span_of(facts, "from", "to")
    spans = (overlap(span_of(row), within) for row in facts.get("maintenance") or ())
    return union(filter(None, spans))


def _lane(
    spec: OfEvents | OfTimeline, facts: Facts, steps: Steps, unread: set[int]
) -> Lane | None:
    if isinstance(spec, OfEvents):
        parts = [
            span_of(part)
            for event in facts.get("events") or ()
            if event.get("kind") in spec.kinds
            for part in event.get("parts") or ()
        ]
        values = _minutes(union(parts), steps, unread)
        return _made(spec.name, spec.about, True, values, steps, _time)
    rows = [row for row in facts.get("timelines") or () if row.get("name") == spec.timeline]
    values = _joined(rows, steps, spec.joined)
    return _made(spec.name, spec.about, spec.is_bad, values, steps, spec.write)


def _made(
    name: str, about: str, is_bad: bool, values: Values, steps: Steps, write: Callable[[Any], str]
) -> Lane | None:
    highest = max((value for value in values.values() if value), default=0)
    if not highest:
        return None
    buckets = tuple(Bucket(span, values.get(span[0])) for span in steps.spans)
    texts = tuple(write(one.value) if one.value else "" for one in buckets)
    return Lane(name, about, write(highest), is_bad, buckets, texts)


def _minutes(parts: Sequence[Span], steps: Steps, unread: set[int]) -> Values:
    """Bad time of each bucket; one that was mostly not read and shows nothing is not known."""
    values: dict[int, float | None] = {}
    for span in steps.spans:
        shared = sum(end - start for start, end in filter(None, (overlap(p, span) for p in parts)))
        values[span[0]] = None if not shared and span[0] in unread else shared
    return values


def _joined(rows: Sequence[Row], steps: Steps, joined: Callable[[Any], float]) -> Values:
    """The values of timelines of one figure, as one for each bucket."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    holes = set()
    for at, value, high in _points(rows):
        bucket = _bucket(at, steps)
        if value is None:
            holes.add(bucket)
        else:
            found[bucket].append(value if high is None else high)
    return {
        span[0]: joined(found[span[0]])
        if found[span[0]] and (any(found[span[0]]) or span[0] not in holes)
        else None
        for span in steps.spans
    }


def _points(rows: Sequence[Row]) -> Iterator[tuple[int, float | None, float | None]]:
    for row in rows:
        for at, value, _, high in row.get("points") or ():
            yield periods.micros(display.parse(at)), value, high


def _not_observed(facts: Facts, steps: Steps) -> Values:
    """The share of the expected observations that is missing, percent; the worst of a bucket."""
    points = [(_start(point), point[1]) for point in _coverage(facts)]
    values: dict[int, float | None] = {span[0]: None for span in steps.spans}
    for bucket, alike in groupby(points, lambda point: _bucket(point[0], steps)):
        known = [100 - percent for _, percent in alike if percent is not None]
        values[bucket] = max(known, default=None)
    return values


def _bucket(at: int, steps: Steps) -> int:
    first = steps.spans[0][0] if steps.spans else at
    return max(first, at - (at - first) % steps.length)


def _coverage(facts: Facts) -> Sequence[Any]:
    rows = (row for row in facts.get("timelines") or () if row.get("name") == "coverage")
    return next(rows, {}).get("points") or ()


def _start(point: Sequence[Any]) -> int:
    return periods.micros(display.parse(point[0]))


def _time(us: float) -> str:
    return display.duration(round(us))


def _share(percent: float) -> str:
    return f"{percent:.3g} %"
