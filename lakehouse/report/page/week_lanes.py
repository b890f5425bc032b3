"""The lanes of a report: a lane for each figure over the period, with events as numbered bands.

Their values are minutes, sums and maxima of each hour, from the report's facts. An hour that was
not read has no value. Nothing here is a mean: the worst minute counts.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Final, Literal, NamedTuple

from markupsafe import Markup

from lakehouse.core import display, periods
from lakehouse.core.periods import DAY_US, HOUR_US, MINUTE_US, SECOND_US, Span, overlap, union
from lakehouse.report.figures import Facts, Row, length, moment, span_of
from lakehouse.report.page import svg
from lakehouse.report.page.svg import Axis
from lakehouse.report.summary.events import Event

_LANE: Final = 62
_TOP: Final = 20
_FOOT: Final = 20
_TEXT: Final = 26
"""Height of a lane's name, pixels."""

_RECURS: Final = 2
"""An event on more days has its times in the strip only."""


Kind = Literal["bad", "use"]
"""Whether more of a figure is worse."""


_MOST: Final = 168
"""Bars of a lane; a longer period has longer ones."""

_FLOOR_PERCENT: Final = 50.0
_UNITS: Final = (
    (DAY_US, "day"), (HOUR_US, "hour"), (MINUTE_US, "minute"), (SECOND_US, "second"),
    (1, "microsecond"),
)  # fmt: skip

_UP_TO: Final = "up to "

Values = Mapping[int, float | None]
"""A value for the start of each bucket; None: not known."""


class Steps(NamedTuple):
    """The buckets of all lanes.

    Attributes:
        spans: In order, cut to the period, without hours that are still to come.
        length: The length of each, microseconds.
    """

    spans: tuple[Span, ...]
    length: int

    @property
    def words(self) -> str:
        """Length of a bucket in words: ``one hour``."""
        unit, noun = next(
            (unit, noun) for unit, noun in _UNITS if self.length % unit == 0 or unit == 1
        )
        number = self.length // unit
        return f"one {noun}" if number == 1 else f"{number} {noun}s"

    def title(self, week: str) -> str:
        """Return the title of all lanes.

        Args:
            week: Name of the ISO week; empty: the period is not a week.
        """
        is_hourly = week and self.length == HOUR_US
        return "The week, hour by hour" if is_hourly else f"The period in steps of {self.words}"


class Spec(NamedTuple):
    """A lane that a report can have.

    Attributes:
        name: Its name.
        about: Meaning of its highest value, in words after it.
        write: A value with its unit.
        kind: Class of its bars.
        values: Its value in each bucket, from the facts.
    """

    name: str
    about: str
    write: Callable[[float], str]
    kind: Kind
    values: Callable[[Facts, Steps], Values]


class Bucket(NamedTuple):
    """A part of the axis.

    Attributes:
        span: Its start and end, microseconds.
        value: None: not known.
        text: The value with its unit; empty: 0 or not known.
    """

    span: Span
    value: float | None
    text: str


class Lane(NamedTuple):
    """A figure over the period.

    Attributes:
        spec: Its declaration.
        highest: The highest value in words: ``highest 20 min``.
        buckets: In order, without hours that are still to come.
    """

    spec: Spec
    highest: str
    buckets: tuple[Bucket, ...]


def lanes(
    all_lanes: Sequence[Lane], events: Sequence[Event], planned: Sequence[Span], axis: Axis, to: int
) -> Markup:
    """Draw the lanes.

    Args:
        all_lanes: From top to bottom.
        events: Events with a number on the page.
        planned: Planned maintenance, microseconds.
        axis: The period.
        to: End of the time that can be observed, microseconds.
    """
    foot = _TOP + _LANE * len(all_lanes)
    names = ", ".join(f"{lane.spec.name}: {lane.highest}" for lane in all_lanes)
    once = [event for event in events if event.parts and len(svg.days_of(event)) <= _RECURS]
    body = [
        *(part for span in planned for part in _bands("planned", span, axis, len(all_lanes))),
        *axis.ticks(_TOP, foot + _FOOT),
        *(part for event in once for part in _bands("band", _whole(event), axis, len(all_lanes))),
        *svg.numbers([(event.parts[0][0], event) for event in once], axis, 10),
        *svg.to_come(axis, to, _TOP, foot - _TOP),
        *(part for nth, lane in enumerate(all_lanes) for part in _lane(lane, nth, axis)),
    ]
    return svg.drawing("lanes", names, *body, height=foot + _FOOT)


def _bands(kind: str, span: Span, axis: Axis, number: int) -> Iterator[Markup]:
    """Draw a time in all lanes, below their names."""
    for nth in range(number):
        yield axis.bar(kind, span, _TOP + _LANE * nth + _TEXT, _LANE - _TEXT)


def _whole(event: Event) -> Span:
    return event.parts[0][0], max(end for _, end in event.parts)


def _lane(lane: Lane, nth: int, axis: Axis) -> Iterator[Markup]:
    base, spec = _TOP + _LANE * (nth + 1), lane.spec
    yield svg.element("line", class_="base", x1=0, x2="100%", y1=base, y2=base)
    for hole in union(bucket.span for bucket in lane.buckets if bucket.value is None):
        yield axis.bar("perhaps", hole, base - _LANE + _TEXT, _LANE - _TEXT)
    yield svg.element(
        "text",
        svg.element("tspan", spec.name, class_="name"), f" {lane.highest}",
        svg.element("tspan", f", {spec.about}" if spec.about else "", class_="opt"),
        x=4, y=base - _LANE + 16,
    )  # fmt: skip
    top = max((bucket.value or 0 for bucket in lane.buckets), default=0)
    for bucket in lane.buckets:
        if bucket.value:
            height = max(1.5, (_LANE - _TEXT) * bucket.value / top)
            yield _bar(spec.kind, bucket, base, height, axis)


def _bar(kind: str, bucket: Bucket, base: int, height: float, axis: Axis) -> Markup:
    left, right = map(axis.share, bucket.span)
    gap = (right - left) * 0.1
    at = f"{display.local(periods.instant(bucket.span[0])):%a %-d %b %H:%M}"
    return svg.element(
        "rect", svg.element("title", f"{at}: {bucket.text}"), class_=kind,
        x=svg.percent(left + gap), width=svg.percent(right - left - 2 * gap),
        y=svg.number(base - height), height=svg.number(height),
    )  # fmt: skip


def steps_of(facts: Facts, to: int) -> Steps:
    """Return the buckets of the facts' timelines, joined where they are too many.

    Args:
        facts: The report's facts.
        to: End of the time that can be observed, microseconds.
    """
    start, end = span_of(facts, "from", "to")
    starts = [moment(point[0]) for point in _coverage(facts)]
    finest = min((b - a for a, b in pairwise(starts)), default=end - start)
    length = finest * -(-(end - start) // (finest * _MOST))
    first = min(starts, default=start)
    spans = (overlap((at, at + length), (start, to)) for at in range(first, to, length))
    return Steps(tuple(filter(None, spans)), length)


def _of_events(*kinds: str) -> Callable[[Facts, Steps], Values]:
    """Return a function for the bad time of events of some kinds."""

    def values(facts: Facts, steps: Steps) -> Values:
        parts = [
            span_of(part)
            for event in facts.get("events") or ()
            if event.get("kind") in kinds
            for part in event.get("parts") or ()
        ]
        return _bad_time(union(parts), steps, _unread(facts, steps))

    return values


def _of_timeline(name: str, joined: Callable[[Any], float]) -> Callable[[Facts, Steps], Values]:
    """Return a function for the values of a timeline, joined in each bucket, never by a mean."""

    def values(facts: Facts, steps: Steps) -> Values:
        rows = [row for row in facts.get("timelines") or () if row.get("name") == name]
        return _joined(rows, steps, joined)

    return values


def _bad_time(parts: Sequence[Span], steps: Steps, unread: set[int]) -> Values:
    """Return the bad time of each bucket, None where too little was read to call it good."""
    values: dict[int, float | None] = {}
    for span in steps.spans:
        shared = sum(end - start for start, end in filter(None, (overlap(p, span) for p in parts)))
        values[span[0]] = None if not shared and span[0] in unread else shared
    return values


def _joined(rows: Sequence[Row], steps: Steps, joined: Callable[[Any], float]) -> Values:
    """Return one value of a figure's timelines for each bucket."""
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
            yield moment(at), value, high


def _unread(facts: Facts, steps: Steps) -> set[int]:
    """Return the buckets that were observed for less than half of their time."""
    missing = _not_observed(facts, steps)
    return {at for at, value in missing.items() if value is None or value > 100 - _FLOOR_PERCENT}


def _not_observed(facts: Facts, steps: Steps) -> Values:
    """Return the missing share of the expected observations, percent, at its worst in a bucket."""
    points = [(moment(point[0]), point[1]) for point in _coverage(facts)]
    values: dict[int, float | None] = {span[0]: None for span in steps.spans}
    for bucket, alike in groupby(points, lambda point: _bucket(point[0], steps)):
        known = [100 - percent for _, percent in alike if percent is not None]
        values[bucket] = max(known, default=None)
    return values


def _bucket(at: int, steps: Steps) -> int:
    first = steps.spans[0][0] if steps.spans else at
    return max(first, at - (at - first) % steps.length)


def _coverage(facts: Facts) -> Sequence[Any]:
    for row in facts.get("timelines") or ():
        if row.get("name") == "coverage":
            return row.get("points") or ()
    return ()


def _count(noun: str) -> Callable[[float], str]:
    return lambda value: display.plural(round(value), noun)


def _up_to_records(value: float) -> str:
    """Return the upper bound of a lag, which a histogram gives."""
    return f"{_UP_TO}{display.rough(value, 'up')} {'record' if value == 1 else 'records'}"


def _share(percent: float) -> str:
    return f"{percent:.3g} %"


LANES: Final = (
    Spec("Unavailable", "with a partition under min ISR or leaderless", length, "bad",
         _of_events("availability")),
    Spec("Failed requests", "produce and fetch", _count("request"), "bad",
         _of_timeline("error_answers", sum)),
    Spec("Clients throttled", "with a throttled client", length, "bad", _of_events("throttling")),
    Spec("Messages lost unread", "counted as offsets", _count("message"), "bad",
         _of_timeline("lost_offsets", sum)),
    Spec("Consumer lag", "of a group in one topic", _up_to_records, "bad",
         _of_timeline("consumer_lag", max)),
    Spec("Waiting for upload", "of a topic", display.size, "bad",
         _of_timeline("copy_lag_bytes", max)),
    Spec("Produce latency, p99", "of the slowest broker", display.milliseconds, "use",
         _of_timeline("produce_p99", max)),
    Spec("Read from tiered storage", "", display.size, "use",
         _of_timeline("remote_fetch_bytes", sum)),
    Spec("Written by producers", "", display.size, "use", _of_timeline("bytes_in", sum)),
)  # fmt: skip
"""Most important first; a lane without a value above zero is not drawn."""


_MISSING: Final = Spec(
    "Not observed", "of the expected observations", _share, "use", _not_observed
)  # fmt: skip


def lanes_of(facts: Facts, steps: Steps) -> list[Lane]:
    """Return the lanes that have a value above zero, and the missing observations below them."""
    drawn = list(filter(None, (_lane_of(spec, facts, steps) for spec in LANES)))
    missing = _lane_of(_MISSING, facts, steps)
    return [*drawn, *([missing] if missing else [])]


def _lane_of(spec: Spec, facts: Facts, steps: Steps) -> Lane | None:
    values = spec.values(facts, steps)
    highest = max((value for value in values.values() if value), default=0)
    if not highest:
        return None
    each = ((span, values.get(span[0])) for span in steps.spans)
    buckets = (Bucket(span, value, spec.write(value) if value else "") for span, value in each)
    words = spec.write(highest)
    words = words if words.startswith(_UP_TO) else f"highest {words}"
    return Lane(spec, words, tuple(buckets))


def planned_of(facts: Facts) -> list[Span]:
    """Return planned maintenance in the period, microseconds."""
    within = span_of(facts, "from", "to")
    spans = (overlap(span_of(row), within) for row in facts.get("maintenance") or ())
    return union(filter(None, spans))
