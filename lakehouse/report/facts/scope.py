"""Input of the sections of a report."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lakehouse.core.objective import Objective
from lakehouse.core.observed_share import FLOOR_PERCENT
from lakehouse.gold.events import Event, in_order
from lakehouse.gold.incidents import Incident
from lakehouse.report.facts.events import event_evidence
from lakehouse.report.facts.events.event_records import EventSections
from lakehouse.report.facts.events.events import sections
from lakehouse.report.facts.fields import to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.verdicts import objective
from lakehouse.report.facts.objectives.weeks import WEEKS, history
from lakehouse.report.facts.sections.consumer_groups import LostBeforeRead, lost_before_read
from lakehouse.report.facts.sections.coverage import Coverage
from lakehouse.report.facts.sections.other_metrics import OwnMetrics, levels, own_metrics
from lakehouse.slo.report_calendar import OF_UTC, Calendar
from lakehouse.slo.sla_statement import Statement
from lakehouse.slo.trends import NO_WEEKS, Weeks


@dataclass(frozen=True)
class Scope:
    """Input of all sections, computed once.

    Attributes:
        gold: Gold of the cluster over the period, and its subjects.
        weeks: The weeks of trends.
        objectives: The objectives.
        promised: A statement of each subject under each objective, as it is published.
        statements: Statements by time, for the time that is unknown.
        coverage: The section of that name.
        calendar: Time zone, business hours, maintenance and corrections.
        changes: The cluster's changes in the period, and the number omitted by kind.
        min_coverage: Minimum coverage for a good answer, percent.
        shown: Metrics of sections, as patterns; the section ``own_metrics`` has all others.
    """

    gold: Gold
    objectives: Sequence[Objective]
    promised: Sequence[Statement]
    statements: Sequence[Statement]
    coverage: Coverage
    weeks: Weeks = NO_WEEKS
    calendar: Calendar = OF_UTC
    changes: tuple[Sequence[Mapping[str, Any]], Mapping[str, int]] = ((), {})
    min_coverage: float = FLOOR_PERCENT
    shown: Collection[str] = ()

    @cached_property
    def own_metrics(self) -> OwnMetrics:
        """The section of that name, which timelines use as well."""
        return own_metrics(self.gold, self.levels, self.coverage, self.objectives, self.shown)

    @cached_property
    def levels(self) -> dict[str, str]:
        """The metrics with rows in gold, each with its finest subject."""
        return levels(self.gold)

    @cached_property
    def events(self) -> EventSections:
        """The sections on events; empty below the minimum coverage."""
        percent = self.coverage.percent
        if percent is None or percent < self.min_coverage:
            return EventSections()
        return sections(self.gold, self.grouped, self.promised, self.calendar, self.lost)

    @cached_property
    def lost(self) -> LostBeforeRead:
        """The section ``lost_before_read``."""
        return lost_before_read(self.gold, self.statements, self.objectives, self.past)

    @property
    def past(self) -> Weeks:
        """The weeks of a history before the week of the report."""
        return self.weeks.before(WEEKS - 1)

    @cached_property
    def grouped(self) -> list[tuple[Event, list[Incident]]]:
        """Incidents of the period by event."""
        return event_evidence.grouped(self.gold)

    @property
    def incidents(self) -> list[Incident]:
        """All incidents of the period, oldest first."""
        return in_order(one for _, own in self.grouped for one in own)

    @cached_property
    def judged(self) -> list[dict[str, Any]]:
        """The objectives with their subjects."""
        return [objective(one, self.promised) for one in self.objectives]

    @property
    def with_history(self) -> list[dict[str, Any]]:
        """The objectives with their earlier weeks."""
        past = history(self.gold, self.objectives, self.weeks, self.calendar, self.min_coverage)
        return [{**row, "history": to_json(past[row["name"]])} for row in self.judged]
