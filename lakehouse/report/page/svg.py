"""Elements of inline SVG, the axis of time, and drawings of objectives and events.

Every text and attribute is escaped, and nothing needs a style attribute. A drawing with text has no
view box. Its places along the x axis are percentages of its width, and its heights are pixels, so
its text has the size of the page's text at every width.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from lakehouse.core import display, periods
from lakehouse.core.periods import Span, overlap, union
from lakehouse.report.summary.events import Event
from lakehouse.report.summary.objective_rows import Week


def element(tag: str, *content: str | Markup, **attributes: object) -> Markup:
    """Return one element.

    Args:
        tag: Its name.
        content: Text or elements.
        attributes: ``class_`` means ``class``, other underscores are hyphens. A value of None
            is left out.
    """
    given = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = "".join(map(escape, content))
    # Both parts are escaped above; tags and keys are constants of the callers.
    return Markup(f"<{tag}{given}>{inner}</{tag}>" if inner else f"<{tag}{given}/>")  # noqa: S704


def drawing(
    kind: str, label: str, *content: Markup, box: str | None = None, height: int | None = None
) -> Markup:
    """Return a drawing.

    Args:
        kind: Its class.
        label: Its content for screen readers; empty: it is hidden from them, because the page has
            the same in words.
        content: Its elements.
        box: Width and height of its coordinates; such a drawing is stretched and has no text.
        height: Its height, pixels; None: as its class has it.
    """
    hidden = {} if label else {"aria_hidden": "true"}
    named = {"role": "img", "aria_label": label} if label else {}
    boxed = {} if box is None else {"viewBox": f"0 0 {box}", "preserveAspectRatio": "none"}
    given = {"class_": kind, "focusable": "false", "height": height}
    return element("svg", *content, **given, **hidden, **named, **boxed)


def percent(share: float) -> str:
    """Return a place along the x axis."""
    return f"{number(100 * share)}%"


def number(value: float) -> str:
    """Return a coordinate, to a hundredth."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


_DAY: Final = timedelta(days=1)
_MINUTES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
_DAYS: Final = (1, 2, 7, 14, 28, 91, 364)
_STEPS: Final = (*(timedelta(minutes=n) for n in _MINUTES), *(timedelta(days=n) for n in _DAYS))
_MOST_TICKS: Final = 8


class Axis(NamedTuple):
    """A period along the x axis.

    Attributes:
        within: The period, microseconds.
    """

    within: Span

    def share(self, us: int) -> float:
        """Return the place of an instant, 0 to 1."""
        start, end = self.within
        return min(1.0, max(0.0, (us - start) / (end - start)))

    def at(self, us: int) -> str:
        """Return the place of an instant in percent."""
        return percent(self.share(us))

    def bar(self, kind: str, span: Span, y: float, height: float) -> Markup:
        """Return a rectangle over a span."""
        left, right = map(self.share, span)
        return element(
            "rect", class_=kind, x=percent(left), width=percent(right - left),
            y=number(y), height=number(height),
        )  # fmt: skip

    def clipped(self, span: Span) -> Span | None:
        """Return the part of a span that is in the period."""
        return overlap(span, self.within)

    def ticks(self, top: float, height: float) -> list[Markup]:
        """Return a line for each round instant, with its label at the foot."""
        drawn = []
        for us, label in ticks_of(self.within, _MOST_TICKS):
            x = self.at(us)
            drawn.append(element("line", class_="tick", x1=x, x2=x, y1=top, y2=height))
            if self.share(us) < 1 - 0.5 / _MOST_TICKS:  # the last one has no room for a label
                drawn.append(element("text", label, x=x, dx=5, y=height - 3))
        return drawn


def ticks_of(within: Span, most: int) -> list[tuple[int, str]]:
    """Return round instants of a period in the zone that is shown, oldest first, with labels.

    Args:
        within: The period, microseconds.
        most: How many there is room for; where the clocks change, one more.
    """
    start, end = map(periods.instant, within)
    step = next((step for step in _STEPS if end - start <= most * step), _STEPS[-1])
    form = "%H:%M" if step < _DAY else "%a %-d" if step == _DAY else "%-d %b"
    ticks = [tick for tick in _multiples(start, end, step) if start <= tick <= end]
    return [(periods.micros(tick), display.local(tick).strftime(form)) for tick in ticks]


def _multiples(start: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """Multiples of a part of a day, or of days; a time that the clock skips is the next one."""
    zone, part = display.zone(), min(step, _DAY)
    midnight = datetime(1970, 1, 1, tzinfo=UTC)
    times = [(midnight + part * n).time() for n in range(_DAY // part)]
    days = periods.days(start, end, zone)
    every = max(step.days, 1)  # a step of weeks starts on Mondays
    begins = [day for day in days if (day.toordinal() - 1) % every == 0]
    return sorted({periods.wall(day, time, zone) for day in begins for time in times})


SCALE: Final = 3.0
"""Greatest share of a budget that a bar shows. All bars have the same scale."""

WEEKS: Final = 8
_LEAST: Final = 0.01
"""A smaller possible use is not drawn, share of a budget."""


def budget_bar(
    used: float | None, low: float | None, high: float | None, label: str = ""
) -> Markup:
    """Draw how much of an error budget was used: grey up to all of it, red beyond.

    Args:
        used: Share of the budget; None: not known, all of the bar is hatched.
        low: The least that was used. With ``high`` it is drawn where ``used`` is not known.
        high: The most that was possibly used, hatched; None: not known.
        label: For screen readers.
    """
    limit = percent(1 / SCALE)
    track = element("rect", class_="track", y=3, width="100%", height=10)
    full = element("line", class_="full", x1=limit, x2=limit, y1=0, y2=16)
    solid = used if used is not None else low or 0.0
    most = high if high is not None else SCALE if used is None else used
    parts = [
        _part("spent", 0, min(1.0, solid)),
        _part("over", 1.0, solid) if solid > 1 else Markup(),
        _part("perhaps", solid, most) if most - solid > _LEAST else Markup(),
        _beyond() if solid > SCALE else Markup(),
    ]
    return drawing("budget", label, track, *parts, full)


def _part(kind: str, start: float, end: float) -> Markup:
    left, right = min(SCALE, start) / SCALE, min(SCALE, end) / SCALE
    return element(
        "rect", class_=kind, x=percent(left), y=3, width=percent(max(0.0, right - left)), height=10
    )


def _beyond() -> Markup:
    """Draw two chevrons: the figure is beyond the scale."""
    path = element("path", class_="beyond", d="M-16 4.5l3.5 3.5-3.5 3.5m6-7l3.5 3.5-3.5 3.5")
    return element("svg", path, x="100%", overflow="visible")


def burn_down(left: Sequence[float], hours: int) -> Markup:
    """Draw the error budget that was left at the end of each hour.

    Args:
        left: Shares of the whole budget; below zero: overspent.
        hours: Length of the period.
    """
    width = max(hours, len(left))
    days = range(24, width, 24) if width <= WEEKS * 24 else ()
    ticks = (element("line", class_="tick", x1=day, x2=day, y1=1, y2=29) for day in days)
    label = f"Error budget left at the end: {100 * left[-1]:,.0f} percent"
    return drawing(
        "burn", label, *ticks, _area("pos", [max(0.0, one) for one in left]),
        _area("neg", [min(0.0, one) for one in left]),
        element("line", class_="zero", x1=0, x2=width, y1=15, y2=15), box=f"{width} 30",
    )  # fmt: skip


def _area(kind: str, values: Sequence[float]) -> Markup:
    """Draw a step for each change, between the zero line and the values."""
    heights = [number(15 - 14 * max(-1.0, min(1.0, value))) for value in values]
    if not any(values):
        return Markup()
    path, before = ["M0 15"], ""
    for hour, height in enumerate(heights):
        if height != before:
            path.append(f"H{hour}V{height}")
            before = height
    return element("path", class_=kind, d="".join((*path, f"H{len(values)}V15z")))


def eight_weeks(weeks: Sequence[Week]) -> Markup:
    """Draw the status of each of the last eight weeks as a square, oldest first."""
    shown = weeks[-WEEKS:]
    words = [f"{week.name} {week.status.replace('_', ' ')}" for week in shown]
    first = WEEKS - len(shown)
    squares = [
        _square(17 * (first + nth) + 1, week.status, word)
        for nth, (week, word) in enumerate(zip(shown, words, strict=True))
    ]
    return drawing("weeks", ", ".join(words) or "no week", *squares, box="136 15")


def _square(x: int, status: str, word: str) -> Markup:
    title = element("title", word)
    shape = element("rect", class_=status, x=x, y=1, width=13, height=13, rx=2)
    cross = element("path", class_="x", d=f"M{x + 3.5} 4.5l6 6m0-6l-6 6")
    return element("g", title, shape, cross if status == "missed" else Markup())


def trend(values: Sequence[float | None], label: str) -> Markup:
    """Draw the last eight weeks as bars; taller is worse, an outline is not known.

    Args:
        values: Oldest first; the last is the week of the report.
        label: For screen readers.
    """
    shown = values[-WEEKS:]
    top = max((value for value in shown if value), default=0.0)
    first = WEEKS - len(shown)
    bars = [
        _bar(9 * (first + nth), value, top, is_now=nth == len(shown) - 1)
        for nth, value in enumerate(shown)
    ]
    return drawing("trend", label, *bars, box="72 28")


def _bar(x: int, value: float | None, top: float, *, is_now: bool) -> Markup:
    if value is None:
        return element("rect", class_="hole", x=x + 0.5, y=1, width=6, height=26)
    height = max(1.0, 27 * value / top) if top else 1.0
    kind = "now" if is_now else None
    return element("rect", class_=kind, x=x, y=number(28 - height), width=7, height=number(height))


_HEIGHT: Final = 48


_APART: Final = 0.019
"""Least distance between two numbers, of the width: they do not overlap on a wide screen."""


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
        # At the end, where neither a number nor the name of a row is.
        yield element("text", "to come", x="100%", dx=-6, y=top + 16, text_anchor="end")


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
