"""Which timelines of the facts are drawn, and what is marked beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import charts, figures
from lakehouse.report.spans import period_of, spans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.marks import Marks
    from lakehouse.report.questions import Question
    from lakehouse.report.spans import Spans

COVERAGE: Final = "Share of the expected time that was seen"

_DRAWN: Final = 2
"""Timelines of one figure that are drawn, where it has no timeline of the whole cluster."""


def of_question(question: Question, facts: Mapping[str, Any], marked: Marks) -> list[charts.Chart]:
    """The drawings that belong to a question."""
    return [
        chart
        for name, title in question.charts.items()
        for chart in _charts(facts, name, title, marked)
    ]


def of_coverage(facts: Mapping[str, Any], marked: Marks) -> list[charts.Chart]:
    """How much was seen."""
    return _charts(facts, "coverage", COVERAGE, marked)


def _charts(facts: Mapping[str, Any], name: str, title: str, marked: Marks) -> list[charts.Chart]:
    mine = marked.of_chart(name)
    drawn = timelines(facts, name)[:_DRAWN]
    return [charts.timeline(figure, titled(title, subject), mine) for figure, subject in drawn]


def timelines(facts: Mapping[str, Any], name: str) -> list[tuple[Spans, object]]:
    """The timeline of the whole cluster, or of each subject where there is none, worst first."""
    found = [one for one in facts.get("timelines") or () if one.get("name") == name]
    drawn = [
        (spans(one.get("points") or (), period_of(facts), str(one.get("unit") or "")), subject)
        for one in [one for one in found if one.get("subject") is None] or found
        for subject in [one.get("subject")]
    ]
    return sorted(drawn, key=lambda pair: pair[0].highest, reverse=True)


def titled(title: str, subject: object) -> str:
    """What a drawing is of, and whose."""
    # A caption is plain text, where isolates do what <bdi> does in markup.
    return title if subject is None else f"{title}, \u2068{figures.name(subject).text}\u2069"
