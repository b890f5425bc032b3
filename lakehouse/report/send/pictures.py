"""The charts of a mail, as PNG."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import vl_convert

from lakehouse.core import display
from lakehouse.report.charts import charts, incident_lanes
from lakehouse.report.charts.event_marks import Marks, marks_of
from lakehouse.report.charts.series import timelines
from lakehouse.report.charts.tidy_svg import COLOURS
from lakehouse.report.figures import Facts, span_of
from lakehouse.report.page.questions import answers
from lakehouse.report.resources import declared

MOST: Final = 6
WIDTH: Final = 600


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart as PNG, because mail clients show no SVG.

    Attributes:
        name: Unique within the mail.
        caption: All that it shows, in words.
        png: The file: ``WIDTH`` wide, with twice as many pixels.
    """

    name: str
    caption: str
    png: bytes


def pictures(facts: Facts) -> tuple[Picture, ...]:
    """The incidents, then the worst timeline of each question, then the coverage."""
    with display.shown_in(display.zone_of(facts)):
        return tuple(islice(_pictures(facts), MOST))


def _pictures(facts: Facts) -> Iterator[Picture]:
    within, marks = span_of(facts, "from", "to"), marks_of(facts)
    bars = incident_lanes.bars(facts, within)
    if bars:
        caption = "Incidents: under minimum (red), no leader (black), perhaps (pale), not seen"
        svg = charts.incidents_svg(bars, within, WIDTH, marks)
        yield Picture("incidents", f"{caption} (grey).{_legend(marks)}", _png(svg))
    titles = {
        figure: f"{question.short}: {title.lower()}"
        for question in answers(facts)
        for figure, title in question.charts.items()
    }
    titles |= declared("page.yaml")["sections"]["coverage"]["charts"]
    for figure, title in titles.items():
        drawn = [pair for pair in timelines(facts, figure, title) if pair[1].is_drawn]
        for caption, series in drawn[:1]:
            summary = series.summary.replace(", hatched.", ", grey.")
            of_chart = marks.of_chart(figure)
            svg = charts.timeline_svg(series, WIDTH, of_chart)
            yield Picture(figure, f"{caption}: {summary}{_legend(of_chart)}", _png(svg))


def _legend(marks: Marks) -> str:
    """The marks and their shapes: a mail has no legend."""
    kinds = declared("charts.yaml")["marks"]
    counts = ", ".join(f"{kinds[kind]['letter']} {text}" for kind, text in marks.counted)
    return (f" Above: {counts}." if counts else "") + (" Shaded: planned." if marks.planned else "")


def _png(svg: str) -> bytes:
    colours = declared("charts.yaml")["picture_colours"]
    for colour, stand_in in COLOURS.items():
        svg = svg.replace(stand_in, colours[colour])
    # Without a background a dark mail client would show dark text on dark.
    head, mark, rest = svg.partition(">")
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
    png: bytes = vl_convert.svg_to_png(f"{head}{mark}{paper}{rest}", scale=2.0)
    return png
