"""Charts as static SVG: timelines of a figure, and the incidents of the period.

Each is drawn twice, for wide and for narrow screens, so that its letters stay readable on both.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, time as clock, timedelta
from typing import TYPE_CHECKING, Any, Final

import vl_convert
from markupsafe import Markup

from lakehouse import zones
from lakehouse.report import words
from lakehouse.report.lookup import declared
from lakehouse.report.marks import NONE
from lakehouse.report.spans import timelines
from lakehouse.report.svg import COLOURS, tidy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lakehouse.report.incidents import Bar, Paint
    from lakehouse.report.marks import Marks
    from lakehouse.report.questions import Section
    from lakehouse.report.spans import Known, Span, Spans

Layer = dict[str, Any]
"""A layer of a chart, or the definition of a channel, as Vega-Lite writes it in JSON."""

_DRAWN: Final = 2
"""Timelines of one figure that are drawn, where it has no timeline of the whole cluster."""

_WIDTHS: Final = {"wide": 760, "narrow": 330}
_PIXELS: Final = 3
"""The narrowest step of a timeline: finer ones cannot be told apart, and make the page heavy."""

_SUFFIXES: Final = frozenset({"%", *words.BINARY})
_VEGA_LITE: Final = "6.4"
_PAINTS: Final[tuple[Paint, ...]] = ("unknown", "edge", "under", "leaderless")

_PARTS: Final = 1000
"""Of one: what is told of a value that is no whole number."""

_UNTIL: Final[Layer] = {"field": "until"}
_DAY: Final = timedelta(days=1)
_MINUTES: Final = tuple(
    timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
)
_DAYS: Final = (1, 2, 7, 14, 28, 91, 364)
_MARK_PIXELS: Final = 12
_MARK_ROOM: Final = 11


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


def of(section: Section, facts: Mapping[str, Any], marked: Marks) -> list[Chart]:
    """The charts of a section."""
    return [
        timeline(figure, title, marked.of_chart(name))
        for name, of_what in section.charts.items()
        for title, figure in timelines(facts, name, of_what)[:_DRAWN]
    ]


def timeline(figure: Spans, title: str, marks: Marks = NONE) -> Chart:
    """One figure over the period; where it is not known it is hatched, never drawn as zero."""
    caption = f"{title}: {figure.summary}"
    if not figure.is_drawn:
        return Chart(caption)
    drawings = _both(lambda width: timeline_svg(figure, width, marks))
    return Chart(caption + marks.said, drawings, _values(figure, _WIDTHS["wide"] // _PIXELS))


def incidents(bars: Sequence[Bar], within: Span, marks: Marks = NONE) -> tuple[Markup, ...]:
    """The incidents of the period, one lane each topic or source; nothing where there are none."""
    return _both(lambda width: incidents_svg(bars, within, width, marks)) if bars else ()


def _both(draw: Callable[[int], str]) -> tuple[Markup, ...]:
    return tuple(tidy(draw(width), kind, width) for kind, width in _WIDTHS.items())


def _svg(drawn: Sequence[Layer], width: int, height: object) -> str:
    spec = {
        "config": declared("charts.yaml")["config"],
        "layer": drawn,
        "width": width,
        "height": height,
    }
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE)
    return svg


def timeline_svg(figure: Spans, width: int, marks: Marks = NONE) -> str:
    """A timeline as Vega draws it, in ``COLOURS``."""
    figure, unit = figure.scaled()
    figure = figure.coarser(width // _PIXELS)
    time = _time_axis(figure.within, width)
    share = unit == "%"
    domain = [0, 100 if share else figure.highest or 1]
    y = {"type": "quantitative", "scale": {"domain": domain, "nice": not share}}
    value = {**y, "field": "value", "axis": _value_axis(unit, figure.highest), "stack": False}
    rows, run = _steps(figure.known), {"field": "run", "type": "nominal"}

    def steps(kind: str, colour: str, more: Layer, **of: Layer) -> Layer:
        mark = {"type": kind, "interpolate": "step-after", "color": COLOURS[colour], **more}
        return _layer(rows, mark, x=time, detail=run, **of)

    drawn = [*_planned(marks, time), _spans(figure.unknown, time, "unknown")]
    if any(span.values[1] != span.values[2] for span in figure.known):
        drawn.append(steps("area", "band", {}, y={**y, "field": "low"}, y2={"field": "high"}))
    drawn.append(steps("area", "accent", {"fillOpacity": 0.18}, y=value))
    drawn.append(steps("line", "accent", {"strokeWidth": 1.5}, y=value))
    drawn += _marked(marks, time, figure.within, width)
    return _svg(drawn, width, 110)


def _value_axis(unit: str, highest: float) -> Layer:
    return {
        # Nothing but bytes and shares has parts.
        "tickCount": 3 if unit in _SUFFIXES else min(3, math.ceil(highest)),
        "format": ",~r" if highest < 10_000 else "~s",
        # The facts' own unit never becomes part of an expression.
        "labelExpr": f"datum.label + '\u00a0{unit}'" if unit in _SUFFIXES else "datum.label",
    }


def _steps(known: Sequence[Known]) -> list[dict[str, Any]]:
    """Points of lines that break where the figure is not known."""
    rows: list[dict[str, Any]] = []
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
        "axis": {
            "labelLimit": label,
            "minExtent": label - 40,
        },
    }
    time = _time_axis(within, width)
    drawn = _planned(marks, time)
    for paint in _PAINTS:
        rows = [
            {"at": _epoch_ms(b.start), "until": _epoch_ms(b.end), "lane": b.lane}
            for b in bars
            if b.paint == paint
        ]
        drawn.append(_layer(rows, _bar(paint), x=time, x2=_UNTIL, y=lane))
    drawn += _marked(marks, time, within, width - label)
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


def _layer(values: Sequence[Layer], mark: Layer, **encoding: Layer) -> Layer:
    """Rows, the mark that each makes, and which channel shows which of its fields."""
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}


def _spans(spans: Sequence[Span], time: Layer, paint: str) -> Layer:
    """Spans over the whole height."""
    rows = [{"at": _epoch_ms(start), "until": _epoch_ms(end)} for start, end in spans]
    return _layer(rows, {"type": "rect", "color": COLOURS[paint]}, x=time, x2=_UNTIL)


def _planned(marks: Marks, time: Layer) -> list[Layer]:
    """Planned maintenance as bands behind all else."""
    return [_spans(marks.planned, time, "planned")] if marks.planned else []


def _marked(marks: Marks, time: Layer, within: Span, width: int) -> list[Layer]:
    """A row of marks above the chart, one line of shapes each kind."""
    apart = marks.apart(within, width // _MARK_PIXELS)
    layers = []
    for row, kind in enumerate(apart.kinds):
        instants = [{"at": _epoch_ms(at)} for at, one in apart.instants if one == kind]
        mark = {"type": "point", "shape": declared("charts.yaml")["marks"][kind]["shape"]}
        layers.append(_layer(instants, mark, x=time, y={"value": -8 - _MARK_ROOM * row}))
    return layers


def _time_axis(within: Span, width: int) -> Layer:
    """The axis of time, in the words of the zone that is shown."""
    most = 5 if width < 500 else 9
    ticks = ticks_of(within, most)
    # Vega knows UTC and the time zone of its own process alone: so the words are ours.
    labels = json.dumps({str(_epoch_ms(tick)): label for tick, label in ticks})
    axis = {
        "values": [_epoch_ms(tick) for tick, _ in ticks],
        "labelExpr": f"{labels}[toString(toNumber(datum.value))]",
    }
    scale = {"type": "utc", "domain": [_epoch_ms(instant) for instant in within]}
    return {"field": "at", "type": "temporal", "scale": scale, "axis": axis}


def _epoch_ms(instant: datetime) -> int:
    """As Vega takes an instant."""
    return round(instant.timestamp() * 1000)


def ticks_of(within: Span, most: int) -> list[tuple[datetime, str]]:
    """Round instants of a period in UTC, oldest first, and what stands below each.

    Args:
        within: The period.
        most: How many there is room for; where summer begins or ends, one more.
    """
    length = within[1] - within[0]
    part = next((part for part in _MINUTES if length <= most * part), None)
    if part is not None:
        found = ((tick, f"{words.local(tick):%H:%M}") for tick in _times(within, part))
    else:
        apart = next((n for n in _DAYS if length <= most * n * _DAY), _DAYS[-1])
        found = ((tick, _day(words.local(tick))) for tick in _midnights(within, apart))
    return [(tick, label) for tick, label in found if within[0] <= tick <= within[1]]


def _times(within: Span, part: timedelta) -> list[datetime]:
    """Multiples of a part of a day by the clock; a time that the clock leaves out is the next."""
    zone = words.zone()
    midnight = datetime(1970, 1, 1, tzinfo=UTC)
    wanted = [(midnight + part * n).time() for n in range(_DAY // part)]
    days = zones.days(*within, zone)
    return sorted({zones.wall(day, time_, zone) for day in days for time_ in wanted})


def _midnights(within: Span, apart: int) -> Iterator[datetime]:
    zone = words.zone()
    for day in zones.days(*within, zone):
        if (day.toordinal() - 1) % apart == 0:  # of weeks the Mondays
            yield zones.wall(day, clock(), zone)


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b}"
