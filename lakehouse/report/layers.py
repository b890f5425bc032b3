"""Layers that all charts share: the axis of time, spans, and what is marked beside a figure."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from typing import TYPE_CHECKING, Any, Final

from lakehouse import zones
from lakehouse.report import words
from lakehouse.report.svg import COLOURS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakehouse.report.marks import Kind, Marks
    from lakehouse.report.spans import Span

Layer = dict[str, Any]
"""A layer of a chart, or the definition of a channel, as Vega-Lite writes it in JSON."""

_SHAPES: Final[dict[Kind, str]] = {
    "restart": "triangle-up",
    "election": "diamond",
    "change": "square",
    "agent": "cross",
}
"""A kind is told by its shape: all marks have one colour."""

UNTIL: Final[Layer] = {"field": "until"}
_DAY: Final = timedelta(days=1)
_PARTS: Final = tuple(
    timedelta(minutes=minutes) for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
)
_DAYS: Final = (1, 2, 7, 14, 28, 91, 364)
_MARK_PIXELS: Final = 12
_MARK_ROOM: Final = 11


def layer(values: Sequence[Layer], mark: Layer, **encoding: Layer) -> Layer:
    """Rows, the mark that each makes, and which channel shows which of its fields."""
    return {"data": {"values": values}, "mark": mark, "encoding": encoding}


def spans(spans: Sequence[Span], time: Layer, paint: str) -> Layer:
    """Spans over the whole height."""
    rows = [{"at": epoch_ms(start), "until": epoch_ms(end)} for start, end in spans]
    return layer(rows, {"type": "rect", "color": COLOURS[paint]}, x=time, x2=UNTIL)


def planned(marks: Marks, time: Layer) -> list[Layer]:
    """Planned maintenance as bands behind all else."""
    return [spans(marks.planned, time, "planned")] if marks.planned else []


def marked(marks: Marks, time: Layer, within: Span, width: int) -> list[Layer]:
    """A row of marks above the chart, one line of shapes each kind."""
    apart = marks.apart(within, width // _MARK_PIXELS)
    layers = []
    for row, kind in enumerate(apart.kinds):
        instants = [{"at": epoch_ms(at)} for at, one in apart.instants if one == kind]
        mark = {
            "type": "point", "shape": _SHAPES[kind], "filled": True, "size": 46,
            "color": COLOURS["event"], "opacity": 1,
        }  # fmt: skip
        layers.append(layer(instants, mark, x=time, y={"value": -8 - _MARK_ROOM * row}))
    return layers


def time_axis(within: Span, width: int) -> Layer:
    """The axis of time, in the words of the zone that is shown."""
    most = 5 if width < 500 else 9
    ticks = ticks_of(within, most)
    # Vega knows UTC and the time zone of its own process alone: so the words are ours.
    labels = json.dumps({str(epoch_ms(tick)): label for tick, label in ticks})
    axis = {
        "values": [epoch_ms(tick) for tick, _ in ticks],
        "labelExpr": f"{labels}[toString(toNumber(datum.value))]",
        "grid": False,
        "labelOverlap": True,
    }
    scale = {"type": "utc", "domain": [epoch_ms(instant) for instant in within]}
    return {"field": "at", "type": "temporal", "title": None, "scale": scale, "axis": axis}


def epoch_ms(instant: datetime) -> int:
    """An instant as Vega takes it."""
    return round(instant.timestamp() * 1000)


def ticks_of(within: Span, most: int) -> list[tuple[datetime, str]]:
    """Round instants of a period in UTC, oldest first, and what stands below each.

    Args:
        within: The period.
        most: How many there is room for; where summer begins or ends, one more.
    """
    length = within[1] - within[0]
    part = next((part for part in _PARTS if length <= most * part), None)
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
