"""Layers that all charts share: the axis of time, spans, and what is marked beside a figure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import altair as alt

from lakehouse.report.svg import COLOURS
from lakehouse.report.ticks import ticks_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from lakehouse.report.marks import Kind, Marks
    from lakehouse.report.spans import Span

Drawing = Any
"""An altair chart: its methods are decorated in a way that loses their types."""

_SHAPES: Final[dict[Kind, str]] = {
    "restart": "triangle-up",
    "election": "diamond",
    "change": "square",
    "agent": "cross",
}
"""A kind is told by its shape: all marks have one colour."""

_MARK_PIXELS: Final = 12
_MARK_ROOM: Final = 11


def spans(spans: Sequence[Span], time: alt.X, paint: str) -> Drawing:
    """Spans over the whole height."""
    rows = [{"at": epoch_ms(start), "until": epoch_ms(end)} for start, end in spans]
    drawn = alt.Chart(alt.InlineData(values=rows)).mark_rect(color=COLOURS[paint])
    return drawn.encode(x=time, x2="until:T")


def planned(marks: Marks, time: alt.X) -> list[Drawing]:
    """Planned maintenance as bands behind all else."""
    return [spans(marks.planned, time, "planned")] if marks.planned else []


def marked(marks: Marks, time: alt.X, within: Span, width: int) -> list[Drawing]:
    """A row of marks above the chart, one line of shapes each kind."""
    apart = marks.apart(within, width // _MARK_PIXELS)
    layers = []
    for row, kind in enumerate(apart.kinds):
        instants = [{"at": epoch_ms(at)} for at, one in apart.instants if one == kind]
        points = alt.Chart(alt.InlineData(values=instants)).mark_point(
            shape=_SHAPES[kind], filled=True, size=46, color=COLOURS["event"], opacity=1
        )
        layers.append(points.encode(x=time, y=alt.value(-8 - _MARK_ROOM * row)))
    return layers


def time_axis(within: Span, width: int) -> alt.X:
    """The axis of time, in the words of the zone that is shown."""
    most = 5 if width < 500 else 9
    ticks = ticks_of(within, most)
    # Vega knows UTC and the time zone of its own process alone: so the words are ours.
    labels = json.dumps({str(epoch_ms(tick)): label for tick, label in ticks})
    axis = alt.Axis(
        values=[epoch_ms(tick) for tick, _ in ticks],
        labelExpr=f"{labels}[toString(toNumber(datum.value))]",
        grid=False,
        labelOverlap=True,
    )
    scale = alt.Scale(type="utc", domain=[epoch_ms(instant) for instant in within])
    return alt.X("at:T", title=None, scale=scale, axis=axis)


def epoch_ms(instant: datetime) -> int:
    """An instant as Vega takes it."""
    return round(instant.timestamp() * 1000)
