"""The facts of docs/report-json.md, from gold: each section is a function of ``SECTIONS``."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, Final, NamedTuple

from lakehouse.core import periods
from lakehouse.core.objective import Objective
from lakehouse.core.observed_share import FLOOR_PERCENT
from lakehouse.core.periods import Period, iso, micros
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import subjects_of, window_of
from lakehouse.gold.events import Event, in_order
from lakehouse.gold.incidents import Incident
from lakehouse.report import evidence
from lakehouse.report.facts import event_evidence
from lakehouse.report.facts.coverage import Coverage, coverage, detection_floor_us, rejected
from lakehouse.report.facts.event_records import EventSections
from lakehouse.report.facts.events import sections
from lakehouse.report.facts.fields import FORMAT, to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.kafka.consumer_groups import (
    LostBeforeRead,
    consumer_lag,
    lost_before_read,
)
from lakehouse.report.facts.kafka.golden_signals import service
from lakehouse.report.facts.kafka.hygiene import hygiene
from lakehouse.report.facts.kafka.min_isr import min_isr
from lakehouse.report.facts.kafka.remote_reads import remote_reads
from lakehouse.report.facts.kafka.replication import replication
from lakehouse.report.facts.kafka.throttling import throttling
from lakehouse.report.facts.kafka.tier_lag import tier_lag
from lakehouse.report.facts.objectives.business_hours import business_hours
from lakehouse.report.facts.objectives.composites import composites
from lakehouse.report.facts.objectives.restated import restated
from lakehouse.report.facts.objectives.trends import trends
from lakehouse.report.facts.objectives.verdicts import objective, verdicts
from lakehouse.report.facts.other_metrics import OwnMetrics, levels, own_metrics
from lakehouse.report.facts.storage import capacity, tiering
from lakehouse.report.facts.timelines import timelines
from lakehouse.slo.calendar.report_calendar import OF_UTC, Calendar
from lakehouse.slo.sla_statement import Statement


class Rack(NamedTuple):
    """The rack of a broker."""

    source: str
    rack: str


@dataclass(frozen=True)
class Scope:
    """All that a section may be made of.

    Attributes:
        gold: Gold of the cluster over the period, and its subjects.
        objectives: The objectives.
        promised: A statement of each subject under each objective, as it is published.
        statements: Statements by time, for the time that is unknown.
        coverage: The section of that name.
        calendar: Time zone, business hours, maintenance and corrections.
        changes: The cluster's changes in the period, and how many of each kind were left out.
        min_coverage: Observed share below which nothing is said, percent.
    """

    gold: Gold
    objectives: Sequence[Objective]
    promised: Sequence[Statement]
    statements: Sequence[Statement]
    coverage: Coverage
    calendar: Calendar = OF_UTC
    changes: tuple[Sequence[Mapping[str, Any]], Mapping[str, int]] = ((), {})
    min_coverage: float = FLOOR_PERCENT

    @cached_property
    def own_metrics(self) -> OwnMetrics:
        """The section of that name, of which timelines are made as well."""
        return own_metrics(self.gold, self.levels, self.coverage, self.objectives)

    @cached_property
    def levels(self) -> dict[str, str]:
        """The metrics that gold has rows of, each with its finest subject."""
        return levels(self.gold)

    @cached_property
    def events(self) -> EventSections:
        """The sections on events; there are none where too little was observed."""
        percent = self.coverage.percent
        if percent is None or percent < self.min_coverage:
            return EventSections()
        return sections(self.gold, self.grouped, self.promised, self.calendar, self.lost)

    @cached_property
    def lost(self) -> LostBeforeRead:
        """The section ``lost_before_read``."""
        return lost_before_read(self.gold, self.statements, self.objectives)

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
        """The section ``objectives``."""
        return [objective(one, self.promised) for one in self.objectives]


def facts(
    engine: Engine,
    objectives: Sequence[Objective],
    period: Period,
    *,
    cluster: str | None = None,
    now: dt.datetime | None = None,
    calendar: Calendar = OF_UTC,
    min_coverage: float = FLOOR_PERCENT,
) -> dict[str, Any]:
    """The facts of a report over a period, which is widened to whole windows, as JSON.

    Args:
        engine: Reads gold.
        objectives: The objectives.
        period: The period of the report.
        cluster: The cluster; may be left out if the lake has one.
        now: Nothing is expected later than this; by default this instant.
        calendar: The time zone of weeks and of shown instants, business hours, maintenance and
            corrections.
        min_coverage: Observed share of a question's expected time below which nothing good is
            said, percent.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing was rolled up, or the lake has several clusters.
    """
    window_seconds = window_of(engine)
    period = period.aligned(window_seconds)
    week = periods.week_name(period, calendar.zone)
    now_us = micros(now or dt.datetime.now(dt.UTC))
    cluster, subjects = subjects_of(engine, cluster)
    gold = Gold(engine, cluster, period, window_seconds, subjects, now_us)
    gold.check_stretches()
    scope = _scope(gold, objectives, calendar, min_coverage)
    with ThreadPoolExecutor(engine.at_once) as pool:  # Spark mostly plans, in one thread a query
        made = [*pool.map(lambda section: to_json(section(scope)), SECTIONS.values())]
    found = {
        "format": FORMAT,
        "jmxlake": version("jmxlake"),
        "cluster": cluster,
        "from": iso(micros(period.start)),
        "to": iso(micros(period.end)),
        "time_zone": calendar.time_zone,
        "week": {"iso": week, "time_zone": calendar.time_zone} if week else None,
        "generated_at": iso(now_us),
        "window_seconds": window_seconds,
        "min_coverage_percent": min_coverage,
        **dict(zip(SECTIONS, made, strict=True)),
    }
    return evidence.with_answers(found)


def _scope(
    gold: Gold, objectives: Sequence[Objective], calendar: Calendar, min_coverage: float
) -> Scope:
    """Compute the statements, and read what several sections need."""
    promised = gold.statements(
        objectives,
        own_windows=gold.period.grain == periods.WEEK,
        burns=True,
        maintenance=calendar.maintenance,
        corrections=calendar.corrections,
    )
    statements = by_time(gold, objectives, promised)
    return Scope(
        gold,
        objectives,
        promised,
        statements,
        coverage(gold),
        calendar,
        gold.changes(),
        min_coverage,
    )


def by_time(
    gold: Gold, objectives: Sequence[Objective], promised: Sequence[Statement]
) -> list[Statement]:
    """Statements on the time of all subjects in the period itself, if possible the promised ones.

    Objectives over other windows, in slices, or on some subjects only are taken as objectives on
    time; those on events have no time.
    """
    elsewhere = {one.objective.name for one in promised if one.period != gold.period}
    of_all = [one for one in objectives if one.kind == one.level and not one.match]
    plain = {one.name for one in of_all if not (one.slices or one.events)} - elsewhere
    others = [one for one in objectives if one.name not in plain and one.events is None]
    missing = [replace(one, level=one.kind, slices=None, match=one.series) for one in others]
    of_period = [one for one in promised if one.objective.name in plain]
    return [*of_period, *gold.statements(missing)]


def racks(scope: Scope) -> list[Rack]:
    """The rack of each broker of the period that has one, as it was reported last."""
    sources, subjects = {one.source for one in scope.coverage.sources}, scope.gold.subjects
    rack_of = {one.source: one.rack for one in subjects if one.rack and one.source in sources}
    return [Rack(str(source), rack) for source, rack in sorted(rack_of.items())]


SECTIONS: Final[Mapping[str, Callable[[Scope], Any]]] = {
    "verdicts": lambda it: verdicts(it.objectives, it.promised),
    "composites": lambda it: composites(it.judged),
    "objectives": lambda it: it.judged,
    "maintenance": lambda it: [
        one.to_json() for one in it.calendar.maintenance if one.overlaps(it.gold.period)
    ],
    "corrections": lambda it: [
        one.to_json()
        for one in it.calendar.corrections
        if any(one in statement.corrections for statement in it.promised)
    ],
    "restated": lambda it: restated(it.gold, it.judged),
    "business_hours": lambda it: business_hours(it.gold, it.objectives, it.calendar),
    "service": lambda it: service(it.gold, it.statements),
    "min_isr": lambda it: min_isr(it.gold, it.statements, it.incidents),
    "replication": lambda it: replication(it.gold, it.statements, it.changes[0]),
    "throttling": lambda it: throttling(it.gold, it.statements),
    "tier_lag": lambda it: tier_lag(it.gold, it.statements),
    "consumer_lag": lambda it: consumer_lag(it.gold, it.objectives),
    "lost_before_read": lambda it: it.lost,
    "remote_reads": lambda it: remote_reads(it.gold),
    "tiering": lambda it: tiering(it.gold, it.statements),
    "capacity": lambda it: capacity(it.gold),
    "own_metrics": lambda it: it.own_metrics,
    "hygiene": lambda it: hygiene(
        it.gold, {one.family for one in it.coverage.sources if one.observed_us}
    ),
    "coverage": lambda it: it.coverage,
    "collected": lambda it: sorted(it.levels.keys() & evidence.metrics()),
    "timelines": lambda it: timelines(it.gold, it.own_metrics),
    "trends": lambda it: trends(it.gold, it.objectives),
    "racks": racks,
    "changes": lambda it: [{**row, "at": iso(row["at"])} for row in it.changes[0]],
    "changes_omitted": lambda it: it.changes[1],
    "rejected": lambda it: rejected(it.gold),
    "detection_floor_us": lambda it: detection_floor_us(it.coverage),
    "events": lambda it: it.events.events,
    "incidents": lambda it: it.events.incidents,
    "incidents_omitted": lambda it: it.events.incidents_omitted,
    "incomplete": lambda it: [one.to_json() for one in it.gold.incomplete],
}
"""Functions that compute the sections; ``fields.to_json`` writes what they return."""
