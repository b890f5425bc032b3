"""Figures over the period, one lane each on one axis of time, with events as numbered bands."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from markupsafe import Markup

from lakehouse.core import display, periods
from lakehouse.core.spans import Span, union
from lakehouse.report.charts.event_strip import days_of, numbers, to_come
from lakehouse.report.charts.svg import drawing, element, number, percent
from lakehouse.report.charts.time_axis import Axis
from lakehouse.report.summary.model import Event

_LANE: Final = 62
_TOP: Final = 20
_FOOT: Final = 20
_TEXT: Final = 26
"""Height of a lane's name, pixels."""

_RECURS: Final = 2
"""An event on more days has its times in the strip only."""


Kind = Literal["bad", "use"]
"""Whether more of a figure is worse."""


class Bucket(NamedTuple):
    """A part of the axis.

    Attributes:
        span: Its start and end, microseconds.
        value: None: not known.
    """

    span: Span
    value: float | None


class Lane(NamedTuple):
    """A figure over the period.

    Attributes:
        name: Its name.
        about: Its unit and meaning, after the highest value.
        highest: The highest value in words: ``highest 20 min``.
        kind: Class of its bars.
        buckets: In order, without hours that are still to come.
        texts: The value of each bucket with its unit.
    """

    name: str
    about: str
    highest: str
    kind: Kind
    buckets: tuple[Bucket, ...]
    texts: tuple[str, ...]


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
    names = ", ".join(f"{lane.name}: {lane.highest}" for lane in all_lanes)
    once = [event for event in events if event.parts and len(days_of(event)) <= _RECURS]
    body = [
        *(part for span in planned for part in _bands("planned", span, axis, len(all_lanes))),
        *axis.ticks(_TOP, foot + _FOOT),
        *(part for event in once for part in _bands("band", _whole(event), axis, len(all_lanes))),
        *numbers([(event.parts[0][0], event) for event in once], axis, 10),
        *to_come(axis, to, _TOP, foot - _TOP),
        *(part for nth, lane in enumerate(all_lanes) for part in _lane(lane, nth, axis)),
    ]
    return drawing("lanes", names, *body, height=foot + _FOOT)


def _bands(kind: str, span: Span, axis: Axis, number: int) -> Iterator[Markup]:
    """Draw a time in all lanes, below their names."""
    for nth in range(number):
        yield axis.bar(kind, span, _TOP + _LANE * nth + _TEXT, _LANE - _TEXT)


def _whole(event: Event) -> Span:
    return event.parts[0][0], max(end for _, end in event.parts)


def _lane(lane: Lane, nth: int, axis: Axis) -> Iterator[Markup]:
    base = _TOP + _LANE * (nth + 1)
    yield element("line", class_="base", x1=0, x2="100%", y1=base, y2=base)
    for hole in union(bucket.span for bucket in lane.buckets if bucket.value is None):
        yield axis.bar("perhaps", hole, base - _LANE + _TEXT, _LANE - _TEXT)
    yield element(
        "text",
        element("tspan", lane.name, class_="name"), f" {lane.highest}",
        element("tspan", f", {lane.about}" if lane.about else "", class_="opt"),
        x=4, y=base - _LANE + 16,
    )  # fmt: skip
    top = max((bucket.value or 0 for bucket in lane.buckets), default=0)
    for bucket, text in zip(lane.buckets, lane.texts, strict=True):
        if bucket.value:
            height = max(1.5, (_LANE - _TEXT) * bucket.value / top)
            yield _bar(lane.kind, bucket.span, base, height, text, axis)


def _bar(kind: str, span: Span, base: int, height: float, text: str, axis: Axis) -> Markup:
    left, right = map(axis.share, span)
    gap = (right - left) * 0.1
    at = f"{display.local(periods.instant(span[0])):%a %-d %b %H:%M}"
    return element(
        "rect", element("title", f"{at}: {text}"), class_=kind,
        x=percent(left + gap), width=percent(right - left - 2 * gap),
        y=number(base - height), height=number(height),
    )  # fmt: skip
