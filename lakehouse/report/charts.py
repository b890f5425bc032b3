"""Charts as static SVG: timelines of a figure, and the incidents of the period.

Each is drawn twice, for wide and for narrow screens, so that its letters stay readable on both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import vl_convert
from markupsafe import Markup

from lakehouse.report import layers, words
from lakehouse.report.marks import NONE
from lakehouse.report.svg import COLOURS, tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from lakehouse.report.incidents import Bar, Paint
    from lakehouse.report.layers import Layer
    from lakehouse.report.marks import Marks
    from lakehouse.report.spans import Known, Span, Spans

_WIDTHS: Final = {"wide": 760, "narrow": 330}
_FONT: Final = "Liberation Sans, Arial, Helvetica, sans-serif"
_PIXELS: Final = 3
"""The narrowest step of a timeline: finer ones cannot be told apart, and make the page heavy."""

_SUFFIXES: Final = frozenset({"%", *map(words.binary_unit, range(words.BINARY_UNITS))})
_VEGA_LITE: Final = "6.4"
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
    return _timeline(scaled, unit, width, marks)


def incidents(bars: Sequence[Bar], within: Span, marks: Marks = NONE) -> tuple[Markup, ...]:
    """The incidents of the period, one lane each topic or source; nothing where there are none."""
    return _both(lambda width: incidents_svg(bars, within, width, marks)) if bars else ()


def incidents_svg(bars: Sequence[Bar], within: Span, width: int, marks: Marks = NONE) -> str:
    """The incidents as Vega draws them, in ``COLOURS``."""
    return _incidents(bars, within, width, marks)


def _both(draw: Callable[[int], str]) -> tuple[Markup, ...]:
    return tuple(tidy(draw(width), kind, width) for kind, width in _WIDTHS.items())


_STYLE: Final = {
    "font": _FONT,
    "background": "transparent",
    "padding": 2,
    "view": {"stroke": None},
    "axis": {
        **dict.fromkeys(("labelColor", "titleColor"), COLOURS["muted"]),
        **dict.fromkeys(("gridColor", "domainColor", "tickColor"), COLOURS["line"]),
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    },
}


def _svg(drawn: Sequence[Layer], width: int, height: object) -> str:
    spec = {"config": _STYLE, "layer": drawn, "width": width, "height": height}
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE)
    return svg


def _timeline(figure: Spans, unit: str, width: int, marks: Marks) -> str:
    figure = figure.coarser(width // _PIXELS)
    time = layers.time_axis(figure.within, width)
    share = unit == "%"
    domain = [0, 100 if share else figure.highest or 1]
    y = {"type": "quantitative", "scale": {"domain": domain, "nice": not share}, "title": None}
    value = {**y, "field": "value", "axis": _value_axis(unit, figure.highest), "stack": False}
    rows, run = _steps(figure.known), {"field": "run", "type": "nominal"}

    def steps(kind: str, colour: str, more: Layer, **of: Layer) -> Layer:
        mark = {"type": kind, "interpolate": "step-after", "color": COLOURS[colour], **more}
        return layers.layer(rows, mark, x=time, detail=run, **of)

    drawn = [*layers.planned(marks, time), layers.spans(figure.unknown, time, "unknown")]
    if any(span.values[1] != span.values[2] for span in figure.known):
        drawn.append(steps("area", "band", {}, y={**y, "field": "low"}, y2={"field": "high"}))
    drawn.append(steps("area", "accent", {"fillOpacity": 0.18}, y=value))
    drawn.append(steps("line", "accent", {"strokeWidth": 1.5}, y=value))
    drawn += layers.marked(marks, time, figure.within, width)
    return _svg(drawn, width, 110)


def _value_axis(unit: str, highest: float) -> Layer:
    return {
        # Nothing but bytes and shares has parts.
        "tickCount": 3 if unit in _SUFFIXES else min(3, math.ceil(highest)),
        "format": ",~r" if highest < 10_000 else "~s",
        # The facts' own unit never becomes part of an expression.
        "labelExpr": f"datum.label + '\u00a0{unit}'" if unit in _SUFFIXES else "datum.label",
        "domain": False,
        "ticks": False,
        "minExtent": 52,
    }


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


def _incidents(bars: Sequence[Bar], within: Span, width: int, marks: Marks) -> str:
    lanes = list(dict.fromkeys(bar.lane for bar in bars))
    label = 170 if width > 500 else 96
    lane = {
        "field": "lane",
        "type": "nominal",
        "sort": lanes,
        "title": None,
        "scale": {"domain": lanes, "paddingInner": 0.35},
        "axis": {
            "labelLimit": label,
            "labelPadding": 6,
            "minExtent": label - 40,
            "domain": False,
            "ticks": False,
            "grid": False,
        },
    }
    time = layers.time_axis(within, width)
    drawn = layers.planned(marks, time)
    for paint in _PAINTS:
        rows = [
            {"at": layers.epoch_ms(b.start), "until": layers.epoch_ms(b.end), "lane": b.lane}
            for b in bars
            if b.paint == paint
        ]
        drawn.append(layers.layer(rows, _bar(paint), x=time, x2=layers.UNTIL, y=lane))
    drawn += layers.marked(marks, time, within, width - label)
    return _svg(drawn, width - label, {"step": 26})


def _bar(paint: Paint) -> Layer:
    """A state is shown by its height, too, not by its colour alone."""
    colour = COLOURS[paint]
    bar = {"type": "bar", "color": colour, "height": {"band": 0.5 if paint == "under" else 0.9}}
    # A stroke keeps a short one seen.
    is_bad = paint in {"under", "leaderless"}
    return {**bar, "stroke": colour, "strokeWidth": 1.5} if is_bad else bar


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
