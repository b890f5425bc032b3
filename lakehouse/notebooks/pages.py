"""Pages for cells: one question, list or text, with the report's style and policy."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from lakehouse import slo
from lakehouse.core import formats
from lakehouse.core.metrics import LEADERLESS, UNAVAILABLE
from lakehouse.report.charts import charts
from lakehouse.report.charts.axis import marks_of
from lakehouse.report.facts.build import SECTIONS, Scope, by_time
from lakehouse.report.facts.coverage import coverage
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.kafka.tiered_storage import LAGGING
from lakehouse.report.facts.saved import to_json
from lakehouse.report.page import figures, sections
from lakehouse.report.page.page import html
from lakehouse.report.page.verdicts import verdicts

_QUESTIONS: Final[dict[str, tuple[str, Collection[str]]]] = {
    "min-isr": ("min_isr", (UNAVAILABLE, LEADERLESS)),
    "throttling": (
        "throttling",
        [f"kafka.client.{kind}.throttle_time" for kind in ("produce", "fetch", "request")],
    ),
    "tier-lag": ("tier_lag", tuple(LAGGING.values())),
    "lost": ("lost_before_read", ("kafka.group.non_consumed",)),
    "remote-reads": ("remote_reads", ()),
}
"""A section of the facts, and the metrics whose objectives belong to it, by question."""

ANCHORS: Final = tuple(_QUESTIONS)
"""The questions, by their names in the report's page."""

_PARTS: Final = (
    "eyebrow", "period", "cluster", "trouble", "text", "verdicts", "answer", "notes", "charts",
    "listings",
)  # fmt: skip
"""The parts of a cell, beside its title."""


def trouble(message: str) -> str:
    """A cell with an error.

    Args:
        message: One line; text from outside in it is escaped.
    """
    return page(title="This cell has nothing to show", trouble=formats.line(message, 600))


def question(gold: Gold, objectives: Sequence[slo.Objective], anchor: str) -> str:
    """A question's answer, verdicts, charts and tables.

    Args:
        gold: Gold of the week and cluster.
        objectives: All objectives.
        anchor: One of ``ANCHORS``.
    """
    facts = question_facts(gold, objectives, anchor)
    (one,) = (each for each in sections.questions(facts) if each.anchor == anchor)
    seen = sections.coverage(facts)
    return page(
        title=one.title,
        eyebrow=one.kip,
        period=formats.period(facts["from"], facts["to"]),
        cluster=figures.name(facts["cluster"]),
        verdicts=verdicts(facts),
        answer=one.answer,
        notes=(*one.notes, figures.plain_text(seen.answer)),
        charts=charts.of(one, facts, marks_of(facts)),
        listings=(*one.listings, *seen.listings),
    )


def question_facts(gold: Gold, objectives: Sequence[slo.Objective], anchor: str) -> dict[str, Any]:
    """The facts of one question, a part of those of a report (docs/report-json.md).

    Args:
        gold: Gold of the week and cluster.
        objectives: All objectives.
        anchor: One of ``ANCHORS``.
    """
    section, metrics = _QUESTIONS[anchor]
    own = [one for one in objectives if one.metric in metrics]
    # Over the week itself, whatever the objectives' windows are.
    statements = by_time(gold, own, gold.statements(own))
    scope = Scope(gold, own, statements, statements, coverage(gold))
    names = ("verdicts", "objectives", section, "coverage", "timelines")
    return {
        "cluster": gold.cluster,
        "from": gold.period.start.isoformat(),
        "to": gold.period.end.isoformat(),
        **{name: to_json(SECTIONS[name](scope)) for name in names},
    }


def page(**parts: Any) -> str:
    """A cell with a title and some of the other parts."""
    return html("cell.html.j2", **dict.fromkeys(_PARTS, ()) | parts)
