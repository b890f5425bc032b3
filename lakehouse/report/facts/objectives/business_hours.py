"""The objectives over business hours alone."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, iso
from lakehouse.core.spans import without
from lakehouse.report.facts import statement_rows
from lakehouse.report.facts.fields import Means
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.verdicts import Verdict, objective, verdicts
from lakehouse.slo.calendar.maintenance import Maintenance
from lakehouse.slo.calendar.report_calendar import Calendar
from lakehouse.slo.sla_statement import Statement


class BusinessHours(NamedTuple):
    """The objectives over business hours only."""

    hours: Annotated[str, Means("days and hours")]
    time_zone: Annotated[str, Means("their time zone")]
    spans: Annotated[list[list[str]], Means("start and end of each business day, UTC")]
    verdicts: Annotated[list[Verdict], Means("verdicts, worst first")]
    objectives: Annotated[list[dict[str, Any]], Means(
        "objectives and their subjects", json=list[statement_rows.Objective])]  # fmt: skip


def business_hours(
    gold: Gold, objectives: Sequence[Objective], calendar: Calendar
) -> BusinessHours | None:
    """The section; None without business hours in the calendar."""
    if calendar.business is None:
        return None
    spans = calendar.business.within(gold.period, calendar.zone)
    statements = statements_in(gold, objectives, spans)
    return BusinessHours(
        calendar.business.text,
        calendar.time_zone,
        [[iso(end) for end in span.span] for span in spans],
        verdicts(objectives, statements),
        [objective(one, statements) for one in objectives],
    )


def statements_in(
    gold: Gold, objectives: Sequence[Objective], spans: Sequence[Period]
) -> list[Statement]:
    """Statements on the time of some spans together; the rest of the period does not count.

    Args:
        gold: The cluster's gold.
        objectives: The objectives.
        spans: Parts of the period; each is widened to whole windows of gold.
    """
    rest = outside([span.aligned(gold.window_seconds) for span in spans], gold.period)
    inside = (one.without or one for one in gold.statements(objectives, maintenance=rest))
    return [one for one in inside if one.expected_us or any(one.times)]


def outside(spans: Sequence[Period], period: Period) -> tuple[Maintenance, ...]:
    """The parts of a period that lie in no span, as time that does not count."""
    rest = without(period.span, (span.span for span in spans))
    return tuple(Maintenance(start, end, "") for start, end in rest)
