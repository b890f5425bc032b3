"""Events on the period's axis: when each was bad, with its number."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from markupsafe import Markup

from lakehouse.core import display, periods
from lakehouse.core.spans import Span, union
from lakehouse.report.charts.svg import drawing, element, percent
from lakehouse.report.charts.time_axis import Axis
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
