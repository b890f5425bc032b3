"""The sections of a report's facts, by their keys in report.json, in its order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse import tables
from lakehouse.core.lifetimes import Subject, floor_us
from lakehouse.core.metrics import families
from lakehouse.core.time.periods import WEEK, iso, micros
from lakehouse.engines.gold_reader import is_one_of, is_same
from lakehouse.report.facts.coverage import Coverage, coverage
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.hygiene import hygiene
from lakehouse.report.facts.min_isr import COUNTED_BY_BROKER, min_isr
from lakehouse.report.facts.objectives import business_hours, objective, restated, verdicts
from lakehouse.report.facts.throttling import throttling
from lakehouse.report.facts.tiered_storage import (
    lost_before_read,
    remote_reads,
    tier_lag,
    tiering,
)
from lakehouse.report.facts.timelines import timelines
from lakehouse.report.facts.trends import trends
from lakehouse.slo import Objective, attainment
from lakehouse.slo.business_hours import Calendar
from lakehouse.slo.statement import Statement
from lakehouse.tables.gold import BEYOND, IN_THE_FUTURE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


_UNDATED: Final = (IN_THE_FUTURE, BEYOND)
"""Reasons of rejected rows that every report counts, as they lie in no report's period."""


class Rack(NamedTuple):
    """The rack of a broker."""

    source: str
    rack: str


@dataclass(frozen=True)
class Scope:
    """All that a section may be made of.

    Attributes:
        gold: Gold of the cluster over the period.
        objectives: The objectives.
        subjects: The cluster's subjects.
        promised: A statement of each subject under each objective, as it is published.
        statements: Statements by time, for the time that is unknown.
        coverage: The section of that name.
        events: The cluster's events in the period, and how many of each kind were left out.
        calendar: Time zone, business hours and maintenance.
        now_us: Nothing is expected later than this.
    """

    gold: Gold
    objectives: Sequence[Objective]
    subjects: Sequence[Subject]
    promised: Sequence[Statement]
    statements: Sequence[Statement]
    coverage: Coverage
    events: tuple[Sequence[Mapping[str, Any]], Mapping[str, int]]
    calendar: Calendar
    now_us: int


def scope(
    gold: Gold,
    objectives: Sequence[Objective],
    subjects: Sequence[Subject],
    calendar: Calendar,
    now_us: int,
) -> Scope:
    """Compute the statements, and read what several sections need."""
    period = gold.period
    plain = attainment.Options(window_seconds=gold.window_seconds)
    manner = replace(
        plain, own_windows=period.grain == WEEK, burns=True, maintenance=calendar.maintenance
    )
    promised = attainment.read(gold.engine, objectives, period, now_us, subjects, manner)
    statements, others = attainment.on_time_of(period, promised, objectives)
    statements += attainment.read(gold.engine, others, period, now_us, subjects, plain)
    seen = coverage(gold, subjects, now_us)
    return Scope(
        gold, objectives, subjects, promised, statements, seen, gold.events(), calendar, now_us
    )


def _detection_floor_us(seen: Coverage) -> int | None:
    """An incident that is shorter may never have been seen; None: no broker was read."""
    of_brokers = families(COUNTED_BY_BROKER)
    floors = (
        floor_us(one.interval_us, one.slowest_us or 0)
        for one in seen.sources
        if one.family in of_brokers and one.interval_us
    )
    return max(floors, default=None)


def racks(subjects: Sequence[Subject], sources: Collection[str | None]) -> list[Rack]:
    """The rack of each broker that has one, as it was reported last.

    Args:
        subjects: The cluster's subjects.
        sources: All sources in the period, brokers among them.
    """
    rack_of = {one.source: one.rack for one in subjects if one.rack and one.source in sources}
    return [Rack(str(source), rack) for source, rack in sorted(rack_of.items())]


def rejected(gold: Gold) -> int:
    """How many rows of bronze were rejected, also those in the future or in no valid year."""
    start, end = micros(gold.period.start), micros(gold.period.end)
    (row,) = gold.ask(
        "SELECT coalesce(sum(r.rows), 0) AS number FROM {rows} r "
        f"WHERE {is_same('r.cluster', gold.cluster)} AND ({is_one_of('r.reason', _UNDATED)} "
        f"OR (r.window >= {start} AND r.window < {end}))",
        rows=gold.engine.rows(tables.REJECTED),
    )
    return int(row["number"])


SECTIONS: Final[Mapping[str, Callable[[Scope], Any]]] = {
    "verdicts": lambda it: verdicts(it.objectives, it.promised),
    "objectives": lambda it: [objective(one, it.promised) for one in it.objectives],
    "maintenance": lambda it: [
        one.to_json() for one in it.calendar.maintenance if one.overlaps(it.gold.period)
    ],
    "restated": lambda it: restated(it.gold, SECTIONS["objectives"](it)),
    "business_hours": lambda it: business_hours(
        it.gold, it.objectives, it.subjects, it.now_us, it.calendar
    ),
    "min_isr": lambda it: min_isr(it.gold, it.subjects, it.statements),
    "throttling": lambda it: throttling(it.gold, it.subjects, it.statements),
    "tier_lag": lambda it: tier_lag(it.gold, it.subjects, it.statements),
    "lost_before_read": lambda it: lost_before_read(it.gold, it.statements),
    "remote_reads": lambda it: remote_reads(it.gold),
    "tiering": lambda it: tiering(it.gold, it.statements),
    "hygiene": lambda it: hygiene(
        it.gold,
        it.subjects,
        {one.family for one in it.coverage.sources if one.observed_us},
        it.now_us,
    ),
    "coverage": lambda it: it.coverage,
    "timelines": lambda it: timelines(it.gold, it.subjects, it.now_us),
    "trends": lambda it: trends(it.gold, it.objectives, it.subjects, it.now_us),
    "racks": lambda it: racks(it.subjects, {one.source for one in it.coverage.sources}),
    "events": lambda it: [{**row, "at": iso(row["at"])} for row in it.events[0]],
    "events_omitted": lambda it: it.events[1],
    "rejected": lambda it: rejected(it.gold),
    "detection_floor_us": lambda it: _detection_floor_us(it.coverage),
}
"""Functions that compute the sections; ``saved.to_json`` writes what they return."""
