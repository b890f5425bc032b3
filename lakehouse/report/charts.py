"""Charts as static SVG: timelines of a figure, and the incidents of the period.

Each is drawn twice, for wide and for narrow screens, so that its letters stay readable on both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import altair as alt
import vl_convert
from markupsafe import Markup

from lakehouse.report import layers, words
from lakehouse.report.marks import NONE
from lakehouse.report.svg import COLOURS, tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from lakehouse.report.incidents import Bar, Paint
    from lakehouse.report.layers import Drawing
    from lakehouse.report.marks import Marks
    from lakehouse.report.spans import Known, Span, Spans

_WIDTHS: Final = {"wide": 760, "narrow": 330}
_FONT: Final = "Liberation Sans, Arial, Helvetica, sans-serif"
_PIXELS: Final = 3
"""The narrowest step of a timeline: finer ones cannot be told apart, and make the page heavy."""

_SUFFIXES: Final = frozenset({"%", *map(words.binary_unit, range(words.BINARY_UNITS))})
_PAINTS: Final[tuple[Paint, ...]] = ("unknown", "edge", "under", "leaderless")


_PARTS: Final = 1000
"""Of one: what is told of a value that is no whole number."""


@dataclass(frozen=True, slots=True)
class Values:
    """A drawing's values, in the steps and the unit in which it is drawn.

    Attributes:
        within: First and last instant, seconds since the epoch.
        spans: ``start,length,value,low,high`` of each span, joined by ``;``; both bounds are left
            out where they are the value. Start and length are seconds, the start counts from the
            first instant. Where no span is, the figure is not known.
        unit: What stands behind a value.
    """

    within: str
    spans: str
    unit: str


@dataclass(frozen=True, slots=True)
class Chart:
    """What a drawing says in words, and the drawing; none where the words say all.

    Attributes:
        caption: The words.
        drawings: One for wide screens and one for narrow ones.
        values: What a reader can ask of each instant; None where there is nothing to ask.
    """

    caption: str
    drawings: tuple[Markup, ...] = ()
    values: Values | None = None


def timeline(figure: Spans, title: str, marks: Marks = NONE) -> Chart:
    """One figure over the period; where it is not known it is hatched, never drawn as zero."""
    caption = f"{title}: {figure.summary}"
    if not is_drawn(figure):
        return Chart(caption)
    drawings = _both(lambda width: timeline_svg(figure, width, marks))
    return Chart(caption + marks.said, drawings, _values(figure, _WIDTHS["wide"] // _PIXELS))


def is_drawn(figure: Spans) -> bool:
    """Whether a drawing says more than its caption."""
    return bool(figure.known) and not figure.is_flat_zero


def timeline_svg(figure: Spans, width: int, marks: Marks = NONE) -> str:
    """A timeline as Vega draws it, in ``COLOURS``."""
    scaled, unit = figure.scaled()
    return _svg(_timeline(scaled, unit, width, marks))


def incidents(bars: Sequence[Bar], within: Span, marks: Marks = NONE) -> tuple[Markup, ...]:
    """The incidents of the period, one lane each topic or source; nothing where there are none."""
    return _both(lambda width: incidents_svg(bars, within, width, marks)) if bars else ()


def incidents_svg(bars: Sequence[Bar], within: Span, width: int, marks: Marks = NONE) -> str:
    """The incidents as Vega draws them, in ``COLOURS``."""
    return _svg(_incidents(bars, within, width, marks))


def _both(draw: Callable[[int], str]) -> tuple[Markup, ...]:
    return tuple(tidy(draw(width), kind, width) for kind, width in _WIDTHS.items())


def _svg(chart: Drawing) -> str:
    svg: str = vl_convert.vegalite_to_svg(_style(chart).to_dict())
    return svg


def _style(chart: Drawing) -> Drawing:
    return (
        chart.configure_view(stroke=None)
        .configure(font=_FONT, background="transparent", padding=2)
        .configure_axis(
            labelColor=COLOURS["muted"],
            titleColor=COLOURS["muted"],
            gridColor=COLOURS["line"],
            domainColor=COLOURS["line"],
            tickColor=COLOURS["line"],
            labelFontSize=11,
            titleFontSize=11,
            titleFontWeight="normal",
        )
    )


def _timeline(figure: Spans, unit: str, width: int, marks: Marks) -> Drawing:
    figure = figure.coarser(width // _PIXELS)
    time = layers.time_axis(figure.within, width)
    share = unit == "%"
    scale = alt.Scale(domain=[0, 100 if share else figure.highest or 1], nice=not share)
    value = alt.Y(
        "value:Q", scale=scale, title=None, axis=_value_axis(unit, figure.highest), stack=False
    )
    base = alt.Chart(alt.InlineData(values=_steps(figure.known))).encode(x=time, detail="run:N")
    band = base.mark_area(interpolate="step-after", color=COLOURS["band"])
    area = base.mark_area(interpolate="step-after", color=COLOURS["accent"], fillOpacity=0.18)
    line = base.mark_line(interpolate="step-after", color=COLOURS["accent"], strokeWidth=1.5)
    drawn = [layers.spans(figure.unknown, time, "unknown")]
    if any(span.values[1] != span.values[2] for span in figure.known):
        low = alt.Y("low:Q", scale=scale, title=None)
        drawn.append(band.encode(y=low, y2="high:Q"))
    drawn += [area.encode(y=value), line.encode(y=value)]
    drawn = [*layers.planned(marks, time), *drawn]
    drawn += layers.marked(marks, time, figure.within, width)
    return alt.layer(*drawn).properties(width=width, height=110)


def _value_axis(unit: str, highest: float) -> alt.Axis:
    return alt.Axis(
        # Nothing but bytes and shares has parts.
        tickCount=3 if unit in _SUFFIXES else min(3, math.ceil(highest)),
        format=",~r" if highest < 10_000 else "~s",
        # The facts' own unit never becomes part of an expression.
        labelExpr=f"datum.label + '\u00a0{unit}'" if unit in _SUFFIXES else "datum.label",
        domain=False,
        ticks=False,
        minExtent=52,
    )


def _steps(known: Sequence[Known]) -> list[dict[str, Any]]:
    """Points of lines that break where the figure is not known."""
    rows: list[dict[str, Any]] = []
    run, reached = 0, None
    for span in known:
        run += reached is not None and span.start > reached
        values = dict(zip(("value", "low", "high"), span.values, strict=True)) | {"run": run}
        rows.extend({"at": layers.epoch_ms(at), **values} for at in (span.start, span.end))
        reached = span.end
    return rows


def _incidents(bars: Sequence[Bar], within: Span, width: int, marks: Marks) -> Drawing:
    lanes = list(dict.fromkeys(bar.lane for bar in bars))
    label = 170 if width > 500 else 96
    lane = alt.Y(
        "lane:N",
        sort=lanes,
        title=None,
        scale=alt.Scale(domain=lanes, paddingInner=0.35),
        axis=alt.Axis(
            labelLimit=label,
            labelPadding=6,
            minExtent=label - 40,
            domain=False,
            ticks=False,
            grid=False,
        ),
    )
    time = layers.time_axis(within, width)
    drawn = layers.planned(marks, time)
    drawn += [
        _bars([bar for bar in bars if bar.paint == paint], paint).encode(
            x=time, x2="until:T", y=lane
        )
        for paint in _PAINTS
    ]
    drawn += layers.marked(marks, time, within, width - label)
    return alt.layer(*drawn).properties(width=width - label, height=alt.Step(26))


def _bars(bars: Sequence[Bar], paint: Paint) -> Drawing:
    rows = [
        {"at": layers.epoch_ms(b.start), "until": layers.epoch_ms(b.end), "lane": b.lane}
        for b in bars
    ]
    chart = alt.Chart(alt.InlineData(values=rows))
    colour = COLOURS[paint]
    # A state is told by its height, too, not by its colour alone; a stroke keeps a short one seen.
    if paint == "under":
        return chart.mark_bar(color=colour, height={"band": 0.5}, stroke=colour, strokeWidth=1.5)
    if paint == "leaderless":
        return chart.mark_bar(color=colour, height={"band": 0.9}, stroke=colour, strokeWidth=1.5)
    return chart.mark_bar(color=colour, height={"band": 0.9})


def _values(figure: Spans, most: int) -> Values:
    """Those of a timeline, in about ``most`` spans at most."""
    scaled, unit = figure.coarser(most).scaled()
    first, last = scaled.within
    told = ";".join(_span(one, first) for one in scaled.known)
    return Values(f"{_seconds(first)} {_seconds(last)}", told, unit)


def _span(one: Known, first: datetime) -> str:
    value, low, high = one.values
    start, end = _seconds(one.start), _seconds(one.end)
    told = [round(value * _PARTS)]
    if not low == value == high:
        told += [math.floor(low * _PARTS), math.ceil(high * _PARTS)]  # outwards, as all bounds
    numbers = (start - _seconds(first), end - start, *(part / _PARTS for part in told))
    return ",".join(f"{number:.3f}".rstrip("0").rstrip(".") for number in numbers)


def _seconds(instant: datetime) -> int:
    return round(instant.timestamp())
