"""The page: one self-contained HTML file that asks no network and needs no script."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import assets, beside, charts, figures, incidents, marks, trend, words
from lakehouse.report.listing import listing
from lakehouse.report.lookup import nothing_seen, value_at, week_of
from lakehouse.report.questions import Section, questions, section
from lakehouse.report.spans import period_of
from lakehouse.report.verdicts import headline, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.marks import Marks

CHANGED: Final = (beside.restated, beside.burn, beside.maintenance, trend.section)
"""Sections that say how to take the verdicts, and what changed: they stand before the questions."""

EXTRAS: Final = (beside.business, beside.owners, beside.racks, beside.hygiene)
"""Sections beside the five questions. Of both, only those are there that the facts have."""


def render(facts: Mapping[str, Any]) -> str:
    """The report as one HTML page.

    Args:
        facts: The report's facts, as docs/report-json.md describes them.
    """
    with words.shown_in(words.zone_of(facts)):
        return _rendered(facts)


def _rendered(facts: Mapping[str, Any]) -> str:
    marked = marks.marks(facts, period_of(facts))
    judged, asked, before = verdicts(facts), questions(facts), changed(facts)
    beside_them = [made for one in EXTRAS if (made := one(facts)) is not None]

    def drawn(one: Section) -> list[charts.Chart]:
        return trend.charts_of(facts) if one.anchor == "trends" else charts.of(one, facts, marked)

    return assets.page(
        "page.html.j2",
        facts=facts,
        headline=headline(facts),
        cluster=figures.name(facts.get("cluster")),
        team=figures.single(facts.get("team")),
        period=words.period(facts["from"], facts["to"]),
        week=week_of(facts),
        seen=words.per_cent(value_at(facts, "coverage.percent")),
        verdicts=judged,
        questions=asked,
        changed=before,
        sections=(*before, *asked, *beside_them, coverage_of(facts)),
        charts=drawn,
        happened=_happened(facts, marked),
        marked=marked,
        events=listing("events", facts.get("events")),
        events_omitted=assets.sentence("omitted", events=facts.get("events_omitted") or {}),
    )


def changed(facts: Mapping[str, Any]) -> list[Section]:
    """What changed and how to take the verdicts, as far as the facts have it."""
    return [made for one in CHANGED if (made := one(facts)) is not None]


def coverage_of(facts: Mapping[str, Any]) -> Section:
    """What was seen."""
    coverage = facts.get("coverage") or {}
    said = {"nothing": nothing_seen(facts), "rejected": facts.get("rejected")}
    lists = {"sources": coverage.get("sources"), "gaps": incidents.gaps(facts)}
    listings = tuple(listing(name, rows) for name, rows in lists.items())
    return replace(section("coverage", {"told": coverage, **said}), listings=listings)


def _happened(facts: Mapping[str, Any], marked: Marks) -> dict[str, Any]:
    found, period = incidents.incidents(facts), period_of(facts)
    topics = len({row["topic"] for row in found})
    said = {"incidents": len(found), "topics": topics, "drawn": incidents.LANES}
    return {
        "caption": assets.sentence("happened", **said),
        "drawings": charts.incidents(incidents.bars(facts, period), period, marked),
        "listing": listing("incidents", found),
    }
