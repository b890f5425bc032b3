"""Which timelines of the facts are drawn, and what is marked beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import charts, figures
from lakehouse.report.spans import period_of, spans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.report.marks import Marks
    from lakehouse.report.questions import Question

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
    """The timeline of the whole cluster, or of the worst subjects where there is none."""
    found = [one for one in facts.get("timelines") or () if one.get("name") == name]
    whole = [one for one in found if one.get("subject") is None]
    period = period_of(facts)
    drawn = []
    for one in whole or found:
        figure = spans(one.get("points") or (), period, str(one.get("unit") or ""))
        drawn.append((figure, titled(title, one.get("subject"))))
    drawn.sort(key=lambda pair: pair[0].highest, reverse=True)
    mine = marked.of_chart(name)
    return [charts.timeline(figure, heading, mine) for figure, heading in drawn[:_DRAWN]]


def titled(title: str, subject: object) -> str:
    """What a drawing is of, and whose."""
    # A caption is plain text, where isolates do what <bdi> does in markup.
    return title if subject is None else f"{title}, \u2068{figures.name(subject).text}\u2069"
