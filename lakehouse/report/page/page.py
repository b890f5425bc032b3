"""The page: one self-contained HTML file that needs neither network nor script."""

import base64
import hashlib
from collections.abc import Callable, Sequence, Set
from typing import Any, Final

from markupsafe import Markup

from lakehouse.core import display
from lakehouse.report.charts import budget, event_strip, week_lanes
from lakehouse.report.charts.lanes import Lane, lanes
from lakehouse.report.charts.time_axis import Axis
from lakehouse.report.figures import Facts
from lakehouse.report.page.objective_table import objective_table
from lakehouse.report.resources import asset, templates
from lakehouse.report.summary.model import Event, Summary, Tile
from lakehouse.report.summary.summarize import summarize
from lakehouse.report.tables.details import details
from lakehouse.report.tables.section import Detail

CARDS: Final = 5
"""Events with a card of their own."""

ALSO: Final = 5
"""Further events, in the last card."""


def render(facts: Facts) -> str:
    """Return the report as one HTML page.

    Args:
        facts: The report's facts, see ``facts/report_record.py``.
    """
    summary = summarize(facts)
    with display.shown_in(display.zone_of(facts)):
        return page(summary, details(facts, summary), facts)


def page(summary: Summary, folds: Sequence[Detail], facts: Facts) -> str:
    """Return the report as one HTML page.

    Args:
        summary: The report in short.
        folds: The details.
        facts: The report's facts, for the hour-by-hour figures and the footer.
    """
    axis, to = Axis(summary.span), summary.elapsed_to
    cards, also = _shown(summary.events)
    numbered = (*cards, *also)
    ids = {
        *(f"event-{one.number}" for one in numbered),
        *(f"slo-{one.name}" for one in summary.objectives),
        *(f"d-{one.anchor}" for one in folds),
    }

    def folded(anchor: str) -> str:
        return f"d-{anchor}" if f"d-{anchor}" in ids else "objectives"

    planned = week_lanes.planned_of(facts)
    steps = week_lanes.steps_of(facts, to)
    drawn = [] if summary.is_blind else week_lanes.lanes_of(facts, steps)
    return html(
        "page.html.j2",
        report=summary,
        title=f"{summary.headline.text}: {summary.title}, {summary.cluster.text}, {summary.period}",
        menu=_menu(summary, drawn, folds),
        cards=cards,
        also=also,
        more_events=_more(len(summary.events) - len(numbered)),
        strip=event_strip.strip(numbered, summary.events[len(numbered) :], planned, axis, to),
        planned=planned,
        lanes=lanes(drawn, numbered, planned, axis, to) if drawn else None,
        lanes_title=steps.title(summary.week),
        bar_length=steps.words,
        objectives=objective_table(summary, folded),
        details=[_linked(one, ids) for one in folds],
        made_by=_made_by(facts),
        folded=folded,
        row_of=_row_of(summary),
        tile_trend=_tile_trend,
    )


def html(template: str, **values: Any) -> str:
    """Return a page made of a template, with a policy that admits only its style and script.

    Args:
        template: File of the template.
        values: Its variables; every text is escaped.
    """
    style, script = asset("templates", "page.css"), asset("templates", "page.js")
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    # Both are files of this package and have nothing from outside.
    safe = {"style": Markup(style), "script": Markup(script)}  # noqa: S704
    environment = templates("lakehouse.report")
    return environment.get_template(template).render(**safe, policy=policy, **values)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _shown(events: Sequence[Event]) -> tuple[tuple[Event, ...], tuple[Event, ...]]:
    """Return the events with a card, and the further ones in the last card."""
    major = [event for event in events if event.is_major][:CARDS]
    return tuple(major), tuple(events[len(major) : len(major) + ALSO])


def _linked(fold: Detail, ids: Set[str]) -> Detail:
    """Return a fold whose cells link only to parts of the page."""
    tables = (
        table._replace(
            rows=tuple(
                tuple(cell if cell.link in ids else cell._replace(link="") for cell in row)
                for row in table.rows
            )
        )
        for table in fold.tables
    )
    return fold._replace(tables=tuple(tables))


def _more(number: int) -> str:
    return f"{display.plural(number, 'more event')} in All incidents" if number > 0 else ""


def _menu(
    summary: Summary, drawn: Sequence[Lane], folds: Sequence[Detail]
) -> list[tuple[str, str]]:
    parts = [
        ("events", "Events", not summary.is_blind),
        ("objectives", "Objectives", True),
        ("week", "Hour by hour", drawn),
        ("details", "Details", folds),
    ]
    return [(anchor, label) for anchor, label, is_there in parts if is_there]


def _made_by(facts: Facts) -> str:
    version, made = facts.get("jmxlake"), facts.get("generated_at")
    by = f"Made by jmxlake {display.line(version or '')}".rstrip()
    return f"{by}, {display.day_and_time(made)} {display.zone()}." if made else f"{by}."


def _row_of(summary: Summary) -> Callable[[Event], str]:
    rows = {one.title: f"slo-{one.name}" for one in summary.objectives}
    return lambda event: rows.get(event.objective or "", "objectives")


def _tile_trend(tile: Tile) -> Markup:
    if not any(value is not None for value in tile.trend):
        return Markup()
    known = sum(value is not None for value in tile.trend)
    return budget.trend(tile.trend, f"{tile.label}: last {len(tile.trend)} weeks, {known} known")
