"""The table of objectives: a row for each with its drawings."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from lakehouse.core.periods import HOUR_US
from lakehouse.report.charts import budget
from lakehouse.report.facts.objectives.budget import STATUSES
from lakehouse.report.summary.model import Objective, Summary

_FIRST_SHEET: Final = 12
"""Objectives on the first sheet of paper; more objectives that are met are on the second."""


class ObjectiveRow(NamedTuple):
    """A row.

    Attributes:
        objective: Its words.
        rank: Place of its status, the worst first.
        link: Fragment of its tables.
        bar: The used error budget.
        left: The error budget left after each hour; empty: not known.
        weeks: The last eight weeks.
        is_on_second_sheet: Whether a new sheet of paper starts with it.
    """

    objective: Objective
    rank: int
    link: str
    bar: Markup
    left: Markup
    weeks: Markup
    is_on_second_sheet: bool


class ObjectiveTable(NamedTuple):
    """The rows, and the columns that the report has.

    Attributes:
        rows: Worst first.
        weeks: ``W40 to W47``; empty: no earlier week is known.
        has_left: Whether the error budget left is known of any objective.
        has_owners: Whether an owners file is known.
    """

    rows: tuple[ObjectiveRow, ...]
    weeks: str
    has_left: bool
    has_owners: bool


def objective_table(summary: Summary, link: Callable[[str], str]) -> ObjectiveTable:
    """Return the table of a report's objectives.

    Args:
        summary: The report in short.
        link: The fragment of a section of the details.
    """
    objectives = summary.objectives
    hours = (summary.span[1] - summary.span[0]) // HOUR_US
    second = _second_sheet(objectives)
    rows = tuple(
        ObjectiveRow(
            objective=one,
            rank=STATUSES.index(one.status),
            link=link(one.section),
            bar=_bar(one),
            left=budget.burn_down(one.left, hours) if one.left else Markup(),
            weeks=budget.eight_weeks(one.weeks),
            is_on_second_sheet=nth == second,
        )
        for nth, one in enumerate(objectives)
    )
    weeks = [week.name for one in objectives[:1] for week in one.weeks[-budget.WEEKS :]]
    return ObjectiveTable(
        rows=rows,
        weeks=f"{weeks[0]} to {weeks[-1]}" if weeks else "",
        has_left=any(one.left for one in objectives),
        has_owners=summary.has_owners,
    )


def _bar(one: Objective) -> Markup:
    label = f"{one.used} of the error budget used"
    return budget.budget_bar(one.used_share, one.used_low, one.used_high, label)


def _second_sheet(objectives: Sequence[Objective]) -> int:
    """Return the first row on the second sheet of paper; -1: all are on the first."""
    quiet = [nth for nth, one in enumerate(objectives) if one.status in {"met", "on_track"}]
    return max(quiet[0], 1) if quiet and len(objectives) > _FIRST_SHEET else -1
