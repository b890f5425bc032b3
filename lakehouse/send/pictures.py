"""The report's drawings as PNG: mail clients show no SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import vl_convert

from lakehouse.report import charts, incidents, marks, words
from lakehouse.report.lookup import declared
from lakehouse.report.questions import questions
from lakehouse.report.spans import period_of, timelines
from lakehouse.report.svg import COLOURS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakehouse.report.marks import Kind, Marks

MOST: Final = 6
WIDTH: Final = 600
_SCALE: Final = 2.0
_SHAPES: Final[dict[Kind, str]] = {
    "restart": "▲", "election": "◆", "change": "■", "agent": "✚",
}  # fmt: skip
_LIGHT: Final = {
    "ink": "#1b1f24",
    "muted": "#57606a",
    "line": "#d8dde3",
    "accent": "#1f57a8",
    "band": "#b7c9e3",
    "unknown": "#d3d8de",
    "under": "#b3370b",
    "leaderless": "#1b1f24",
    "edge": "#e6b39b",
    "event": "#6b4fa0",
    "planned": "#eaeefb",
}
"""The page's colours by day; what is not known is grey, for a picture has no hatching."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing.

    Attributes:
        name: Tells it from the others of a mail.
        caption: What it shows, in words: all of it, for who sees no pictures.
        png: The file; ``WIDTH`` wide, at twice as many pixels.
    """

    name: str
    caption: str
    png: bytes


def pictures(facts: Mapping[str, Any]) -> tuple[Picture, ...]:
    """The incidents, then the worst timeline of each question, then what was seen."""
    with words.shown_in(words.zone_of(facts)):
        found = [Picture(*told) for told in _drawn(facts)]
    return tuple(found[:MOST])


def _drawn(facts: Mapping[str, Any]) -> Iterator[tuple[str, str, bytes]]:
    within = period_of(facts)
    marked = marks.marks(facts, within)
    bars = incidents.bars(facts, within)
    if bars:
        caption = "Incidents: under minimum (red), no leader (black), perhaps (pale), not seen"
        svg = charts.incidents_svg(bars, within, WIDTH, marked)
        yield "incidents", f"{caption} (grey).{_shapes(marked)}", _png(svg)
    wanted = {
        name: f"{one.short}: {title.lower()}"
        for one in questions(facts)
        for name, title in one.charts.items()
    }
    wanted |= declared("page.yaml")["sections"]["coverage"]["charts"]
    for name, title in wanted.items():
        drawn = [one for one in timelines(facts, name, title) if one[1].is_drawn]
        for shown, figure in drawn[:1]:
            said = figure.summary.replace(", hatched.", ", grey.")
            mine = marked.of_chart(name)
            svg = charts.timeline_svg(figure, WIDTH, mine)
            yield name, f"{shown}: {said}{_shapes(mine)}", _png(svg)


def _shapes(marked: Marks) -> str:
    """What is marked, and by which shape: a mail has no legend."""
    told = ", ".join(f"{_SHAPES[kind]} {said}" for kind, said in marked.counted)
    return (f" Above: {told}." if told else "") + (" Shaded: planned." if marked.planned else "")


def _png(svg: str) -> bytes:
    for name, stand_in in COLOURS.items():
        svg = svg.replace(stand_in, _LIGHT[name])
    # A dark mail client would show dark letters on dark.
    head, mark, rest = svg.partition(">")
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
    png: bytes = vl_convert.svg_to_png(f"{head}{mark}{paper}{rest}", scale=_SCALE)
    return png
