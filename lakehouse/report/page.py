"""The page: one self-contained HTML file that asks no network and needs no script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse import zones
from lakehouse.report import (
    assets,
    burn_section,
    business_section,
    charts,
    drawings,
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
from lakehouse.report.spans import period_of
from lakehouse.report.verdicts import WORDS, Verdict, headline, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakehouse.report.extra import Extra
    from lakehouse.report.figures import Name
    from lakehouse.report.marks import Marks
    from lakehouse.report.spans import Span

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
    period = period_of(facts)
    marked = marks.marks(facts, period)
    judged = verdicts(facts)
    return assets.page(
        "page.html.j2",
        headline=headline(facts),
        glance=_glance(judged),
        verdicts=judged,
        questions=[_question(one, facts, marked) for one in questions(facts)],
        changed=changed(facts),
        extras=[one for section in EXTRAS if (one := section(facts)) is not None],
        coverage=coverage_of(facts, marked),
        events=observation.EVENTS.of(facts.get("events") or ()),
        events_omitted=observation.omitted(facts),
        **_happened(facts, period, marked),
        **_masthead(facts),
    )


def _glance(judged: Sequence[Verdict]) -> list[tuple[str, list[tuple[int, Name]]]]:
    """The objectives of each verdict, worst first: their places in the list, and their titles."""
    groups: dict[str, list[tuple[int, Name]]] = {word: [] for word in WORDS}
    for number, one in enumerate(judged, 1):
        groups[one.verdict].append((number, figures.name(one.title)))
    return [(word, found) for word, found in groups.items() if found]


def changed(facts: Mapping[str, Any]) -> list[Extra]:
    """What changed and how to take the verdicts, as far as the facts have it."""
    return [one for section in CHANGED if (one := section(facts)) is not None]


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


def _question(question: Question, facts: Mapping[str, Any], marked: Marks) -> dict[str, Any]:
    return {
        "anchor": question.anchor,
        "short": SHORT[question.anchor],
        "title": question.title,
        "kip": question.kip,
        "meaning": question.meaning,
        "finding": question.finding,
        "listings": question.listings,
        "charts": drawings.of_question(question, facts, marked),
    }


def _happened(facts: Mapping[str, Any], period: Span, marked: Marks) -> dict[str, Any]:
    found = incidents.incidents(facts)
    topics = len({row["topic"] for row in found})
    drawn = f", the worst {incidents.LANES} drawn" if topics > incidents.LANES else ""
    return {
        "incidents": tables.INCIDENTS.of(found),
        "incident_drawings": charts.incidents(incidents.bars(facts, period), period, marked),
        "incident_caption": (
            f"{words.plural(len(found), 'incident')} of {words.plural(topics, 'topic')}{drawn}."
        ),
        "marked": marked.counted,
        "is_planned": bool(marked.planned),
    }


def coverage_of(facts: Mapping[str, Any], marked: Marks) -> dict[str, Any]:
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
        "charts": drawings.of_coverage(facts, marked),
        "listings": (
            observation.SOURCES.of(coverage.get("sources") or ()),
            observation.GAPS.of(incidents.gaps(facts)),
        ),
    }
