"""Pages for cells: the report's own parts, style and policy, one thing at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.report import assets, charts, figures, marks, words
from lakehouse.report.page import coverage_of
from lakehouse.report.questions import questions
from lakehouse.report.spans import period_of
from lakehouse.report.verdicts import verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakehouse.periods import Period
    from lakehouse.report.listing import Listing

_SHOWN: Final = (
    "eyebrow", "period", "cluster", "trouble", "text", "verdicts", "answer", "notes", "charts",
    "listings",
)  # fmt: skip
"""What a cell may show, beside its title."""


def trouble(message: str) -> str:
    """A cell that says what is wrong.

    Args:
        message: One line; what is outside text in it is escaped.
    """
    return _page(title="This cell has nothing to show", trouble=words.line(message, 600))


def question(facts: Mapping[str, Any], anchor: str) -> str:
    """A question's answer, verdicts, charts and tables.

    Args:
        facts: As ``answers.answer`` gives them.
        anchor: Which question.
    """
    (one,) = (each for each in questions(facts) if each.anchor == anchor)
    marked = marks.marks(facts, period_of(facts))
    seen = coverage_of(facts)
    return _page(
        title=one.title,
        eyebrow=one.kip,
        period=words.period(facts["from"], facts["to"]),
        cluster=figures.name(facts["cluster"]),
        verdicts=verdicts(facts),
        answer=one.answer,
        notes=(*one.notes, figures.sentence(seen.answer)),
        charts=charts.of(one, facts, marked),
        listings=(*one.listings, *seen.listings),
    )


def tour(cluster: str, listings: tuple[Listing, ...]) -> str:
    """What is in the lake."""
    return _page(title="What is in the lake", cluster=figures.name(cluster), listings=listings)


def text(name: str, told: str) -> str:
    """A story as ``jmxlake explain`` prints it."""
    return _page(title=words.line(name, words.NAME_LIMIT), text=told)


def rows(listing: Listing, period: Period) -> str:
    """What SQL gave."""
    within = words.period(period.start.isoformat(), period.end.isoformat())
    nothing = ("No row was told. That is not zero: see the coverage of this time.",)
    return _page(
        title="The same by SQL" if listing.total else "No such rows",
        period=within,
        notes=() if listing.total else nothing,
        listings=(listing,),
    )


def _page(**told: Any) -> str:
    return assets.page("cell.html.j2", **dict.fromkeys(_SHOWN, ()) | told)
