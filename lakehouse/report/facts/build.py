"""The facts of a report, from gold: each section is a function of ``SECTIONS``."""

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Annotated, Any, Final, NamedTuple

from lakehouse.core import periods
from lakehouse.core.objective import Objective
from lakehouse.core.observed_share import FLOOR_PERCENT
from lakehouse.core.periods import Period, iso, micros
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import subjects_of, window_of
from lakehouse.report import evidence
from lakehouse.report.evidence import Evidence, Question
from lakehouse.report.facts import coverage as coverage_, record_keys, storage
from lakehouse.report.facts.compared import with_figures
from lakehouse.report.facts.coverage import (
    Coverage,
    CoverageOfWeek,
    coverage,
    coverage_of_week,
    detection_floor_us,
    rejected,
)
from lakehouse.report.facts.event_records import EventSections
from lakehouse.report.facts.events import sections
from lakehouse.report.facts.fields import FORMAT, SOURCE, Means, to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.kafka import (
    consumer_groups,
    golden_signals,
    hygiene as hygiene_,
    min_isr as min_isr_,
    remote_reads as remote_reads_,
    replication as replication_,
    throttling as throttling_,
    tier_lag as tier_lag_,
)
from lakehouse.report.facts.kafka.consumer_groups import (
    LostInWeek,
    consumer_lag,
    lost_before_read,
    lost_in_week,
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
from lakehouse.report.facts.objectives.history import WEEKS, history
from lakehouse.report.facts.objectives.restated import restated
from lakehouse.report.facts.objectives.trends import trends
from lakehouse.report.facts.objectives.verdicts import objective, verdicts
from lakehouse.report.facts.other_metrics import OwnMetrics, levels, own_metrics
from lakehouse.report.facts.storage import capacity, tiering
from lakehouse.report.facts.timelines import timelines
from lakehouse.slo.calendar.report_calendar import OF_UTC, Calendar
from lakehouse.slo.sla_statement import Statement
from lakehouse.slo.trends.weeks import NO_WEEKS, Weeks, read as read_weeks, weeks_until


class Earlier(NamedTuple):
    """What is known of a week before, besides statements."""

    coverage: CoverageOfWeek
    lost: list[LostInWeek]


class Rack(NamedTuple):
    """The rack of a broker."""

    source: Annotated[str, SOURCE]
    rack: Annotated[str, Means("its rack as last reported")]


@dataclass(frozen=True)
class Scope:
    """All that a section may be made of.

    Attributes:
        gold: Gold of the cluster over the period, and its subjects.
        weeks: The weeks of trends.
        earlier: What else is known of the weeks before.
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
    weeks: Weeks = NO_WEEKS
    earlier: Sequence[Earlier] = ()
    calendar: Calendar = OF_UTC
    changes: tuple[Sequence[Mapping[str, Any]], Mapping[str, int]] = ((), {})
    min_coverage: float = FLOOR_PERCENT

    @cached_property
    def own_metrics(self) -> OwnMetrics:
        """The section of that name, of which timelines are made as well."""
        return own_metrics(self.gold, self.levels, self.coverage, self.objectives, shown())

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
        return sections(self.gold, self.promised, self.calendar)

    @cached_property
    def judged(self) -> list[dict[str, Any]]:
        """The objectives with their subjects."""
        return [objective(one, self.promised) for one in self.objectives]

    @property
    def with_history(self) -> list[dict[str, Any]]:
        """The objectives with their weeks before this one."""
        past = history(self.gold, self.objectives, self.weeks, self.calendar, self.min_coverage)
        return [{**row, "history": to_json(past[row["name"]])} for row in self.judged]


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
    with ThreadPoolExecutor(engine.at_once) as pool:  # Spark mostly plans, in one thread a query
        scope = _scope(gold, objectives, calendar, min_coverage, pool.map)
        made = [*pool.map(lambda section: to_json(section(scope)), SECTIONS.values())]
    span, elapsed_us = period.span, min(now_us, micros(period.end)) - micros(period.start)
    found = {
        "format": FORMAT,
        "jmxlake": version("jmxlake"),
        "cluster": cluster,
        "from": iso(micros(period.start)),
        "to": iso(micros(period.end)),
        "time_zone": calendar.time_zone,
        "week": {"iso": week, "time_zone": calendar.time_zone} if week else None,
        "generated_at": iso(now_us),
        "running": now_us < span[1],
        "elapsed": round(max(0, elapsed_us) / (span[1] - span[0]), 6),
        "window_seconds": window_seconds,
        "min_coverage_percent": min_coverage,
        **dict(zip(SECTIONS, made, strict=True)),
    }
    return with_figures(found, with_answers)


def _scope(
    gold: Gold,
    objectives: Sequence[Objective],
    calendar: Calendar,
    min_coverage: float,
    each: Callable[..., Iterable[Any]],
) -> Scope:
    """Compute the statements, and read what several sections need."""
    promised = gold.statements(
        objectives,
        own_windows=gold.period.grain == periods.WEEK,
        burns=True,
        left=True,
        maintenance=calendar.maintenance,
        corrections=calendar.corrections,
    )
    statements = by_time(gold, objectives, promised)
    periods_ = weeks_until(gold.period.end, calendar.zone)
    weeks = read_weeks(gold.rows, objectives, periods_, gold.now_us, gold.subjects, each)
    earlier = [*each(lambda place: _earlier(gold, objectives, weeks, place), range(-WEEKS, -1))]
    seen = coverage(gold, [one.coverage for one in earlier])
    return Scope(
        gold,
        objectives,
        promised,
        statements,
        seen,
        weeks,
        earlier,
        calendar,
        gold.changes(),
        min_coverage,
    )


def _earlier(gold: Gold, objectives: Sequence[Objective], weeks: Weeks, place: int) -> Earlier:
    """Read what trends do not say of a week before; nothing was observed before the first."""
    period, name = weeks.periods[place], weeks.names[place]
    first_us = min((one.first_us for one in gold.subjects), default=None)
    if first_us is None or first_us >= micros(period.end):
        return Earlier(CoverageOfWeek(name, None), [])
    own = gold.within(period)
    lost = lost_in_week(name, own, weeks.statements[place], objectives)
    return Earlier(coverage_of_week(name, own), lost)


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
    "objectives": lambda it: it.with_history,
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
    "min_isr": lambda it: min_isr(it.gold, it.statements),
    "replication": lambda it: replication(it.gold, it.statements, it.changes[0]),
    "throttling": lambda it: throttling(it.gold, it.statements),
    "tier_lag": lambda it: tier_lag(it.gold, it.statements),
    "consumer_lag": lambda it: consumer_lag(it.gold, it.objectives),
    "lost_before_read": lambda it: lost_before_read(
        it.gold, it.statements, it.objectives, [row for one in it.earlier for row in one.lost]
    ),
    "remote_reads": lambda it: remote_reads(it.gold),
    "tiering": lambda it: tiering(it.gold, it.statements),
    "capacity": lambda it: capacity(it.gold),
    "own_metrics": lambda it: it.own_metrics,
    "hygiene": lambda it: hygiene(
        it.gold, {one.family for one in it.coverage.sources if one.observed_us}
    ),
    "coverage": lambda it: it.coverage,
    "collected": lambda it: sorted(it.levels.keys() & metrics_of_questions()),
    "timelines": lambda it: timelines(it.gold, it.own_metrics),
    "trends": lambda it: trends(it.gold, it.objectives, it.weeks),
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

QUESTIONS: Final = (
    min_isr_.QUESTION, throttling_.QUESTION, tier_lag_.QUESTION, consumer_groups.LOST_QUESTION,
    consumer_groups.LAG_QUESTION, remote_reads_.QUESTION, golden_signals.ANSWERS_QUESTION,
    golden_signals.LATENCY_QUESTION, golden_signals.TRAFFIC_QUESTION, storage.QUESTION,
    min_isr_.RACKS, hygiene_.QUESTION, coverage_.QUESTION, replication_.QUESTION,
)  # fmt: skip
"""What reports state something on; the keys that they name are those of the records."""

for _question in QUESTIONS:
    _question.check()


def answers(facts: Mapping[str, Any]) -> list[Evidence]:
    """Return the decision for every question."""
    return [evidence.answer(facts, one) for one in QUESTIONS]


def question(name: str) -> Question:
    """Return a question by its name in JSON."""
    return next(one for one in QUESTIONS if one.name == name)


def answer(facts: Mapping[str, Any], name: str) -> Evidence:
    """Return the decision for one question, by its name in JSON."""
    return evidence.answer(facts, question(name))


def with_answers(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts with ``answers``, by the same decisions that every output takes."""
    return {**facts, "answers": [one._asdict() for one in answers(facts)]}


def metrics_of_questions() -> frozenset[str]:
    """Return the metrics that must have been read to answer the questions."""
    return frozenset(one.read for one in QUESTIONS) - {"any"}


def shown() -> frozenset[str]:
    """Return the metrics that sections have figures of, as patterns."""
    return frozenset(
        pattern
        for question in QUESTIONS
        for shows in question.shows
        for pattern in ([shows] if isinstance(shows, str) else record_keys.metrics(shows))
    )
