"""Charts as static SVG: timelines of a figure, and the incidents of the period.

Each is drawn twice, for wide and for narrow screens, so that its text stays readable on both.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, get_args

import vl_convert
from markupsafe import Markup

from lakehouse.core import display, periods
from lakehouse.core.spans import Span
from lakehouse.report.charts.event_marks import NONE, Marks
from lakehouse.report.charts.incident_lanes import Bar, Paint
from lakehouse.report.charts.series import Known, Series, timelines, trends
from lakehouse.report.charts.tidy_svg import COLOURS, tidy
from lakehouse.report.figures import Facts
from lakehouse.report.page.sections import Section
from lakehouse.report.resources import declared

Layer = dict[str, Any]
"""A layer of a chart, or the definition of a channel, as Vega-Lite writes it in JSON."""

_DRAWN: Final = 2
"""Timelines of one figure that are drawn, where it has no timeline of the whole cluster."""

_WIDTHS: Final = {"wide": 760, "narrow": 330}
_PIXELS: Final = 3
"""The narrowest step of a timeline: finer ones look alike, and make the page larger."""

_SUFFIXES: Final = frozenset({"%", *display.BINARY})
_VEGA_LITE: Final = "6.4"

_PARTS: Final = 1000
"""Values in a page are rounded to this part of one."""

_UNTIL: Final[Layer] = {"field": "until"}
_MARK_PIXELS: Final = 12
_MARK_ROOM: Final = 11

_DAY: Final = timedelta(days=1)
_MINUTES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
_DAYS: Final = (1, 2, 7, 14, 28, 91, 364)
_STEPS: Final = (*(timedelta(minutes=n) for n in _MINUTES), *(timedelta(days=n) for n in _DAYS))

_ONE_UNIT: Final = 0xFFFF
"""Greatest character that is one unit of UTF-16."""
_PRIVATE: Final = range(0xE000, 0xF900)
"""Characters that mean nothing by themselves."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A caption, and drawings where they add to it; with these the values that they are drawn of.

    Attributes:
        caption: The content of the drawings, in words.
        drawings: One for wide screens and one for narrow ones; empty where words are enough.
        within: First and last instant, seconds since the epoch.
        spans: ``start,length,value,low,high`` of each span, joined by ``;``; the bounds are
            omitted where both are the value. Start and length are seconds, the start counts from
            the first instant. Outside of all spans the figure is not known.
        unit: The unit of the values.
    """

    caption: str
    drawings: tuple[Markup, ...] = ()
    within: str = ""
    spans: str = ""
    unit: str = ""


def of(section: Section, facts: Facts, marks: Marks) -> list[Chart]:
    """The charts of a section."""
    if section.anchor == "trends":
        return [timeline(series, title) for title, series in trends(facts)]
    return [
        timeline(series, caption, marks.of_chart(name))
        for name, title in section.charts.items()
        for caption, series in timelines(facts, name, title)[:_DRAWN]
    ]


def timeline(series: Series, title: str, marks: Marks = NONE) -> Chart:
    """One figure over the period; where it is not known it is hatched, never drawn as zero."""
    caption, whole = f"{title}: {series.summary}", series.with_forecast()
    if not whole.is_drawn:
        return Chart(caption)
    drawings = _both(lambda width: timeline_svg(whole, width, marks))
    scaled = whole.coarser(_WIDTHS["wide"] // _PIXELS).scaled()
    first, last = map(_seconds, scaled.within)
    spans = ";".join(_span_text(span, first) for span in scaled.known)
    return Chart(caption + marks.caption, drawings, f"{first} {last}", spans, scaled.unit)


def incidents(bars: Sequence[Bar], within: Span, marks: Marks = NONE) -> tuple[Markup, ...]:
    """The incidents of the period, a lane for each topic or source; empty without incidents."""
    return _both(lambda width: incidents_svg(bars, within, width, marks)) if bars else ()


def _both(draw: Callable[[int], str]) -> tuple[Markup, ...]:
    return tuple(tidy(draw(width), kind, width) for kind, width in _WIDTHS.items())


def _svg(layers: Sequence[Layer], width: int, height: object) -> str:
    config = declared("charts.yaml")["config"]
    spec = {"config": config, "layer": layers, "width": width, "height": height}
    text = json.dumps(spec, ensure_ascii=False)
    # Vega cuts long labels between the halves of a surrogate pair, and fails: such characters have
    # others stand in for them.
    wide = sorted({one for one in text if ord(one) > _ONE_UNIT})
    unused = (chr(one) for one in _PRIVATE if chr(one) not in text)
    instead = dict.fromkeys(wide, "\ufffd") | dict(zip(wide, unused, strict=False))
    svg: str = vl_convert.vegalite_to_svg(
        text.translate({ord(one): other for one, other in instead.items()}), vl_version=_VEGA_LITE
    )
    back = {ord(other): one for one, other in instead.items() if other != "\ufffd"}
    return svg.translate(back)


def timeline_svg(series: Series, width: int, marks: Marks = NONE) -> str:
    """A timeline as Vega draws it, in ``COLOURS``."""
    series = series.scaled().coarser(width // _PIXELS)
    time = _time_axis(series.within, width)
    share = series.unit == "%"
    domain = [0, 100 if share else series.highest or 1]
    y = {"type": "quantitative", "scale": {"domain": domain, "nice": not share}}
    value = {**y, "field": "value", "axis": _value_axis(series), "stack": False}
    rows, run = _steps(series.known), {"field": "run", "type": "nominal"}

    def steps(kind: str, colour: str, more: Layer, **channels: Layer) -> Layer:
        mark = {"type": kind, "interpolate": "step-after", "color": COLOURS[colour], **more}
        return _layer(rows, mark, x=time, detail=run, **channels)

    layers = [*_planned(marks, time), _spans(series.unknown, time, "unknown")]
    if any(span.values[1] != span.values[2] for span in series.known):
        layers.append(steps("area", "band", {}, y={**y, "field": "low"}, y2={"field": "high"}))
    layers.append(steps("area", "accent", {"fillOpacity": 0.18}, y=value))
    layers.append(steps("line", "accent", {"strokeWidth": 1.5}, y=value))
    layers += _marked(marks, time, series.within, width)
    return _svg(layers, width, 110)


def _value_axis(series: Series) -> Layer:
    unit, highest = series.unit, series.highest
    return {
        # Only bytes and shares have fractions.
        "tickCount": 3 if unit in _SUFFIXES else min(3, math.ceil(highest)),
        "format": ",~r" if highest < 10_000 else "~s",
        # A unit of the facts never becomes part of an expression.
        "labelExpr": f"datum.label + '\u00a0{unit}'" if unit in _SUFFIXES else "datum.label",
    }


def _steps(known: Sequence[Known]) -> list[Layer]:
    """Points of lines that break where the figure is not known."""
    rows: list[Layer] = []
    run, reached = 0, None
    for span in known:
        run += reached is not None and span.start > reached
        values = dict(zip(("value", "low", "high"), span.values, strict=True)) | {"run": run}
        rows.extend({"at": _epoch_ms(at), **values} for at in (span.start, span.end))
        reached = span.end
    return rows


def incidents_svg(bars: Sequence[Bar], within: Span, width: int, marks: Marks = NONE) -> str:
    """The incidents as Vega draws them, in ``COLOURS``."""
    lanes = list(dict.fromkeys(bar.lane for bar in bars))
    label = 170 if width > 500 else 96
    lane = {
        "field": "lane",
        "type": "nominal",
        "sort": lanes,
        "scale": {"domain": lanes, "paddingInner": 0.35},
        "axis": {"labelLimit": label, "minExtent": label - 40},
    }
    time = _time_axis(within, width)
    layers = _planned(marks, time)
    for paint in get_args(Paint):
        rows = [
            {"at": _epoch_ms(bar.start), "until": _epoch_ms(bar.end), "lane": bar.lane}
            for bar in bars
            if bar.paint == paint
        ]
        layers.append(_layer(rows, _bar(paint), x=time, x2=_UNTIL, y=lane))
    layers += _marked(marks, time, within, width - label)
    return _svg(layers, width - label, {"step": 26})


def _bar(paint: Paint) -> Layer:
    """A state is shown by its height as well as by its colour."""
    colour = COLOURS[paint]
    bar = {"type": "bar", "color": colour, "height": {"band": 0.5 if paint == "under" else 0.9}}
    # The stroke keeps a short bar visible.
    is_bad = paint in {"under", "leaderless"}
    return {**bar, "stroke": colour, "strokeWidth": 1.5} if is_bad else bar


def _span_text(span: Known, first: int) -> str:
    value, low, high = span.values
    start, end = _seconds(span.start), _seconds(span.end)
    parts = [round(value * _PARTS)]
    if not low == value == high:
        parts += [math.floor(low * _PARTS), math.ceil(high * _PARTS)]
    numbers = (start - first, end - start, *(part / _PARTS for part in parts))
    return ",".join(f"{number:.3f}".rstrip("0").rstrip(".") for number in numbers)


def _seconds(us: int) -> int:
    return round(us / 1_000_000)


def _layer(values: Sequence[Layer], mark: Layer, **encoding: Layer) -> Layer:
    """Rows, the mark of each, and the field of each channel."""
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}


def _spans(spans: Sequence[Span], time: Layer, paint: str) -> Layer:
    """Spans over the whole height."""
    rows = [{"at": _epoch_ms(start), "until": _epoch_ms(end)} for start, end in spans]
    return _layer(rows, {"type": "rect", "color": COLOURS[paint]}, x=time, x2=_UNTIL)


def _planned(marks: Marks, time: Layer) -> list[Layer]:
    """Planned maintenance as bands behind all else."""
    return [_spans(marks.planned, time, "planned")] if marks.planned else []


def _marked(marks: Marks, time: Layer, within: Span, width: int) -> list[Layer]:
    """Events above the chart, one row of shapes for each kind."""
    apart = marks.apart(within, width // _MARK_PIXELS)
    layers = []
    for row, (kind, _) in enumerate(apart.counted):
        instants = [{"at": _epoch_ms(at)} for at, of_kind in apart.instants if of_kind == kind]
        mark = {"type": "point", "shape": declared("charts.yaml")["marks"][kind]["shape"]}
        layers.append(_layer(instants, mark, x=time, y={"value": -8 - _MARK_ROOM * row}))
    return layers


def _time_axis(within: Span, width: int) -> Layer:
    """The axis of time, with labels in the zone that is shown."""
    ticks = {_epoch_ms(at): label for at, label in ticks_of(within, 5 if width < 500 else 9)}
    # Vega can show UTC and the time zone of its own process only.
    labels = json.dumps({str(at): label for at, label in ticks.items()})
    axis = {"values": list(ticks), "labelExpr": f"{labels}[toString(toNumber(datum.value))]"}
    scale = {"type": "utc", "domain": [_epoch_ms(end) for end in within]}
    return {"field": "at", "type": "temporal", "scale": scale, "axis": axis}


def ticks_of(within: Span, most: int) -> list[tuple[int, str]]:
    """Round instants of a period in the zone that is shown, oldest first, and their labels.

    Args:
        within: The period, microseconds.
        most: How many there is room for; where the clocks change, one more.
    """
    start, end = map(periods.instant, within)
    step = next((step for step in _STEPS if end - start <= most * step), _STEPS[-1])
    form = "%H:%M" if step < _DAY else "%-d %b"
    ticks = [tick for tick in _multiples(start, end, step) if start <= tick <= end]
    return [(periods.micros(tick), display.local(tick).strftime(form)) for tick in ticks]


def _multiples(start: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """Multiples of a part of a day, or of days; a time that the clock skips is the next one."""
    zone, part = display.zone(), min(step, _DAY)
    midnight = datetime(1970, 1, 1, tzinfo=UTC)
    times = [(midnight + part * n).time() for n in range(_DAY // part)]
    days = periods.days(start, end, zone)
    every = max(step.days, 1)  # a step of weeks begins on Mondays
    begins = [day for day in days if (day.toordinal() - 1) % every == 0]
    return sorted({periods.wall(day, time, zone) for day in begins for time in times})


def _epoch_ms(us: int) -> int:
    return round(us / 1000)
