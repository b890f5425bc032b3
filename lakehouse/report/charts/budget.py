"""Drawings of an objective: its error budget, how that was spent, and its last eight weeks."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from lakehouse.report.charts.svg import drawing, element, number, percent
from lakehouse.report.summary.model import Week

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
