"""Elements of inline SVG, and the axis of time of a drawing in the zone that is shown.

Every text and attribute is escaped, and nothing needs a style attribute. A drawing with text has no
view box. Its places along the x axis are percentages of its width, and its heights are pixels, so
its text has the size of the page's text at every width.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from lakehouse.core import display, periods
from lakehouse.core.periods import Span, overlap


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
