"""The page: one self-contained HTML file that asks no network and needs no script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse import zones
from lakehouse.report import (
    assets,
    burn_section,
    business_section,
    charts,
    figures,
    hygiene_section,
    incidents,
    maintenance_section,
    marks,
    observation,
    owner_section,
    rack_section,
    restated_section,
    tables,
    trend,
    words,
)
from lakehouse.report.findings import nothing_seen
from lakehouse.report.questions import Question, questions
from lakehouse.report.spans import Span, spans
from lakehouse.report.verdicts import headline, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping

_DRAWN: Final = 2
"""Timelines of one figure that are drawn, where it has no timeline of the whole cluster."""

SHORT: Final = {
    "min-isr": "Safe writes",
    "throttling": "Throttling",
    "tier-lag": "Tiered storage",
    "lost": "Lost before read",
    "remote-reads": "Remote reads",
}
"""What the list of sections calls each question."""


CHANGED: Final = (
    restated_section.section,
    burn_section.section,
    maintenance_section.section,
    trend.section,
)
"""Sections that say how to take the verdicts, and what changed: they stand before the questions."""

EXTRAS: Final = (
    business_section.section,
    owner_section.section,
    rack_section.section,
    hygiene_section.section,
)
"""Sections beside the five questions. Of both, only those are there that the facts have."""


def render(facts: Mapping[str, Any]) -> str:
    """The report as one HTML page.

    Args:
        facts: The report's facts, as docs/report-json.md describes them.
    """
    with words.shown_in(zones.named(str(facts.get("time_zone") or zones.UTC_NAME))):
        return _rendered(facts)


def _rendered(facts: Mapping[str, Any]) -> str:
    within = _within(facts)
    return assets.page(
        "page.html.j2",
        headline=headline(facts),
        verdicts=verdicts(facts),
        questions=[_question(one, facts) for one in questions(facts)],
        changed=[one for section in CHANGED if (one := section(facts)) is not None],
        extras=[one for section in EXTRAS if (one := section(facts)) is not None],
        coverage=coverage_of(facts),
        events=observation.EVENTS.of(facts.get("events") or ()),
        **_happened(facts, within),
        **_masthead(facts),
    )


def _within(facts: Mapping[str, Any]) -> Span:
    return words.parse(facts["from"]), words.parse(facts["to"])


def _masthead(facts: Mapping[str, Any]) -> dict[str, Any]:
    window = facts.get("window_seconds")
    return {
        "version": words.line(facts.get("jmxlake") or ""),
        "cluster": figures.name(facts.get("cluster")),
        "team": figures.single(facts.get("team")),
        "period": words.period(facts["from"], facts["to"]),
        "week": week_name(facts),
        "zone": str(words.zone()),
        "restated": len(facts.get("restated") or ()),
        "generated": words.day_and_time(facts.get("generated_at")),
        "window": words.duration(None if window is None else round(window * 1_000_000)),
        "floor": words.duration(facts.get("detection_floor_us"), "up"),
    }


def week_name(facts: Mapping[str, Any]) -> str:
    """Which week is meant: the same name is another time elsewhere. Empty: it is no ISO week."""
    week = facts.get("week")
    if not week:
        return ""
    return f"ISO week {words.line(week['iso'])} of {words.line(week['time_zone'])}"


def _question(question: Question, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "anchor": question.anchor,
        "short": SHORT[question.anchor],
        "title": question.title,
        "kip": question.kip,
        "meaning": question.meaning,
        "finding": question.finding,
        "listings": question.listings,
        "charts": charts_of(question, facts),
    }


def charts_of(question: Question, facts: Mapping[str, Any]) -> list[charts.Chart]:
    """The drawings that belong to a question."""
    within = _within(facts)
    return [
        chart
        for name, title in question.charts.items()
        for chart in _charts(facts, name, title, within)
    ]


def _charts(facts: Mapping[str, Any], name: str, title: str, within: Span) -> list[charts.Chart]:
    """The timeline of the whole cluster, or of the worst subjects where there is none."""
    found = [one for one in facts.get("timelines") or () if one.get("name") == name]
    whole = [one for one in found if one.get("subject") is None]
    drawn = []
    for one in whole or found:
        figure = spans(one.get("points") or (), within, str(one.get("unit") or ""))
        drawn.append((figure, titled(title, one.get("subject"))))
    drawn.sort(key=lambda pair: pair[0].highest, reverse=True)
    marked = marks.marks(facts, within).of_chart(name)
    return [charts.timeline(figure, heading, marked) for figure, heading in drawn[:_DRAWN]]


def titled(title: str, subject: object) -> str:
    """What a drawing is of, and whose."""
    # A caption is plain text, where isolates do what <bdi> does in markup.
    return title if subject is None else f"{title}, \u2068{figures.name(subject).text}\u2069"


def _happened(facts: Mapping[str, Any], within: Span) -> dict[str, Any]:
    found = incidents.incidents(facts)
    topics = len({row["topic"] for row in found})
    drawn = f", the worst {incidents.LANES} drawn" if topics > incidents.LANES else ""
    marked = marks.marks(facts, within)
    return {
        "incidents": tables.INCIDENTS.of(found),
        "incident_drawings": charts.incidents(incidents.bars(facts, within), within, marked),
        "incident_caption": (
            f"{words.plural(len(found), 'incident')} of {words.plural(topics, 'topic')}{drawn}."
        ),
        "marked": marked.counted,
        "is_planned": bool(marked.planned),
    }


def coverage_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What was seen, as a share, a sentence, charts and lists."""
    coverage = facts.get("coverage") or {}
    share = coverage.get("percent")
    percent = words.percent(None if share is None else share / 100, "down")
    observed, expected, unknown = (
        words.duration(coverage.get(key)) for key in ("observed_us", "expected_us", "unknown_us")
    )
    sentence = (
        f"{percent} of the time that should have been seen was seen: {observed} of {expected}, "
        f"{unknown} unknown. Times are summed over all that is read."
    )
    if nothing_seen(facts):
        sentence = "Nothing was seen in this period: every figure of it is unknown."
    if facts.get("rejected"):
        rows = words.plural(facts["rejected"], "row")
        sentence += f" {rows} of the agents could not be used; gold/rejected says why."
    return {
        "percent": percent,
        "sentence": sentence,
        "charts": _charts(
            facts, "coverage", "Share of the expected time that was seen", _within(facts)
        ),
        "listings": (
            observation.SOURCES.of(coverage.get("sources") or ()),
            observation.GAPS.of(incidents.gaps(facts)),
        ),
    }
