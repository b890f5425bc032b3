"""Events and figures over the period, on one axis of time.

The strip has a bar for each event, with its number. Each figure has a lane, with events as numbered
bands.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, Literal, NamedTuple

from markupsafe import Markup

from lakehouse.core import display, periods
from lakehouse.core.periods import Span, union
from lakehouse.report.charts.svg import Axis, drawing, element, number, percent
from lakehouse.report.summary.model import Event

_HEIGHT: Final = 48
_APART: Final = 0.016
"""Least distance between two numbers, of the width: they never overlap on a wide screen."""

_APART_ON_A_PHONE: Final = 0.055
_FINEST: Final = 800
"""Shorter gaps between bad times are not drawn, parts of the axis."""

_DAYS_NUMBERED: Final = 14
"""In a longer period only the first bad time of an event has its number."""


def strip(
    shown: Sequence[Event], others: Sequence[Event], planned: Sequence[Span], axis: Axis, to: int
) -> Markup:
    """Draw the events of a period, hidden from screen readers: the cards have the same in words.

    Args:
        shown: Events with a card, which have their number.
        others: Events without.
        planned: Planned maintenance, microseconds.
        axis: The period.
        to: End of the time that can be observed, microseconds.
    """
    rest = (part for event in others for part in event.parts)
    return drawing(
        "strip", "", *(axis.bar("planned", span, 0, 34) for span in planned),
        *axis.ticks(0, _HEIGHT), *_marks("within", rest, axis),
        *(mark for event in shown for mark in _marks(kind_of(event), event.parts, axis)),
        *numbers([(at, event) for event in shown for at in _starts(event, axis)], axis, 12),
        *to_come(axis, to, 0, 34),
    )  # fmt: skip


def kind_of(event: Event) -> str:
    """Return the class of an event's marks."""
    return "mark" if event.is_major else "within"


def numbers(at: Iterable[tuple[int, Event]], axis: Axis, y: float) -> Iterator[Markup]:
    """Draw numbers of events, side by side where they are at the same time.

    Args:
        at: Instants and their events.
        axis: The period.
        y: Height of their centre.
    """
    reached = on_phone = -1.0
    for us, event in sorted(at, key=lambda one: (one[0], one[1].number)):
        place = min(1 - _APART / 2, max(_APART / 2, axis.share(us), reached + _APART))
        # A phone has no room for this number. Its card has it.
        has_room = place >= on_phone + _APART_ON_A_PHONE
        reached, on_phone = place, place if has_room else on_phone
        x = percent(place)
        yield element(
            "g",
            element("circle", class_=kind_of(event), cx=x, cy=y, r=8.5),
            element("text", str(event.number), class_="num", x=x, y=y + 4),
            class_=None if has_room else "opt",
        )


def to_come(axis: Axis, to: int, top: float, height: float) -> Iterator[Markup]:
    """Draw the part of a running period that is not over yet."""
    if to < axis.within[1]:
        yield axis.bar("perhaps", (to, axis.within[1]), top, height)
        yield element("text", "to come", x=axis.at(to), dx=6, y=top + 16)


def days_of(event: Event) -> list[int]:
    """Return the first bad instant of each day on which an event was bad, in the zone shown."""
    starts = sorted(start for start, _ in event.parts)
    by_day = groupby(starts, lambda us: display.local(periods.instant(us)).date())
    return [next(of_day) for _, of_day in by_day]


def _starts(event: Event, axis: Axis) -> list[int]:
    days = days_of(event)
    whole = axis.within[1] - axis.within[0]
    return days if whole <= _DAYS_NUMBERED * 86_400_000_000 else days[:1]


def _marks(kind: str, parts: Iterable[Span], axis: Axis) -> Iterator[Markup]:
    gap = (axis.within[1] - axis.within[0]) // _FINEST
    for start, end in union((start, end + gap) for start, end in parts):
        if inside := axis.clipped((start, end - gap)):
            yield axis.bar(kind, inside, 24, 8)


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
