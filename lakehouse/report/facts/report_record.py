"""The record of report.json, and its sections: their input, functions and questions."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple

from lakehouse.core.objective import Objective
from lakehouse.core.periods import iso
from lakehouse.core.subjects import FLOOR_PERCENT
from lakehouse.gold.incidents import Event, Incident, in_order
from lakehouse.report import evidence
from lakehouse.report.evidence import Evidence
from lakehouse.report.facts import fields
from lakehouse.report.facts.events import events
from lakehouse.report.facts.events.event_records import (
    Event as EventRow,
    EventSections,
    IncidentOfEvent,
)
from lakehouse.report.facts.fields import SOURCE, Bounds, Declared, Known, Means, Question, to_json
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.statement_rows import (
    BusinessHours,
    Change,
    Correction,
    Incomplete,
    Maintenance,
    Objective as ObjectiveRow,
    Restated,
    Verdict,
)
from lakehouse.report.facts.objectives.verdicts import (
    Composite,
    business_hours,
    composites,
    objective,
    restated,
    verdicts,
)
from lakehouse.report.facts.objectives.weeks import WEEKS, Trends, history, trends
from lakehouse.report.facts.sections import (
    capacity as capacity_,
    consumer_groups,
    golden_signals,
    hygiene as hygiene_,
    monitoring,
    remote_storage,
    replication as replication_,
    throttling as throttling_,
    tier_lag as tier_lag_,
    timelines as timelines_,
)
from lakehouse.report.owners import Account
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
    coverage: monitoring.Coverage
    weeks: Weeks = NO_WEEKS
    calendar: Calendar = OF_UTC
    changes: tuple[Sequence[Mapping[str, Any]], Mapping[str, int]] = ((), {})
    min_coverage: float = FLOOR_PERCENT
    shown: Collection[str] = ()

    @cached_property
    def own_metrics(self) -> monitoring.OwnMetrics:
        """The section of that name, which timelines use as well."""
        return monitoring.own_metrics(
            self.gold, self.levels, self.coverage, self.objectives, self.shown
        )

    @cached_property
    def levels(self) -> dict[str, str]:
        """The metrics with rows in gold, each with its finest subject."""
        return monitoring.levels(self.gold)

    @cached_property
    def events(self) -> EventSections:
        """The sections on events; empty below the minimum coverage."""
        percent = self.coverage.percent
        if percent is None or percent < self.min_coverage:
            return EventSections()
        return events.sections(self.gold, self.grouped, self.promised, self.calendar, self.lost)

    @cached_property
    def lost(self) -> consumer_groups.LostBeforeRead:
        """The section ``lost_before_read``."""
        return consumer_groups.lost_before_read(
            self.gold, self.statements, self.objectives, self.past
        )

    @property
    def past(self) -> Weeks:
        """The weeks of a history before the week of the report."""
        return self.weeks.before(WEEKS - 1)

    @cached_property
    def grouped(self) -> list[tuple[Event, list[Incident]]]:
        """Incidents of the period by event."""
        return events.grouped(self.gold)

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


FORMAT: Final = 2
"""The ``format`` of report.json that this version writes and reads."""


class Rack(NamedTuple):
    """The rack of a broker."""

    source: Annotated[str, SOURCE]
    rack: Annotated[str, Means("its rack as last reported")]


class PreviousFigure(NamedTuple):
    """A key figure of the week before."""

    week: Annotated[str, Means("ISO week")]
    value: Annotated[float, Means("figure")]
    low: Annotated[Known, Means("lower bound, with unknown time as good")]
    high: Annotated[Known, Means("upper bound, with unknown time as bad; empty: not known")]


class KeyFigure(NamedTuple):
    """A figure of all subjects, or of the worst."""

    name: Annotated[str, Means(
        "writes_unavailable, no_leader, messages_lost, clients_throttled, coverage, "
        "requests_failed or produce_latency")]  # fmt: skip
    state: Annotated[str, Means("known, not_known, not_collected or not_applicable")]
    reason: Annotated[str | None, Means("reason if it is not known")]
    value: Annotated[Bounds, Means("figure; its upper bound is empty if unknown time can add more")]
    unit: Annotated[str, Means("us, offsets, clients, share or ms")]
    of: Annotated[int | None, Means("number of all clients")]
    topic: Annotated[str | None, fields.TOPIC]
    user: Annotated[str | None, fields.USER]
    client_id: Annotated[str | None, fields.CLIENT_ID]
    group: Annotated[str | None, fields.GROUP]
    source: Annotated[str | None, fields.SOURCE]
    subject_value: Annotated[Bounds, Means("figure of the worst subject")]
    subject_unit: Annotated[str, Means("its unit")]
    unknown_us: Annotated[int | None, Means("unknown time of the worst subject, microseconds")]
    objective: Annotated[str | None, fields.OBJECTIVE]
    previous: Annotated[PreviousFigure | None, Means("week before")]
    change: Annotated[str, Means(
        "worse, better, same, unclear (bounds of both weeks overlap) or "
        "none (without previous)")]  # fmt: skip
    history: Annotated[list[float | None], Means(
        "eight weeks, oldest first, greater is worse; of coverage the unknown share")]  # fmt: skip


class Previous(NamedTuple):
    """Change in the missed objectives since the week before."""

    week: Annotated[str, Means("ISO week before")]
    newly_missed: Annotated[list[str], Means("objectives missed now and met in that week")]
    no_longer_missed: Annotated[list[str], Means("objectives met now and missed in that week")]
    missed: Annotated[int, Means("number of objectives missed in that week")]


class Week(Declared):
    """An ISO week."""

    iso: Annotated[str, Means("ISO week, such as 2026-W47")]
    time_zone: Annotated[str, Means("time zone in which the period is that week")]


class Owners(Declared):
    """Cost allocation; only with an owners file."""

    currency: Annotated[str | None, Means("currency of the costs")]
    accounts: Annotated[list[Account], Means("owners; rows without an owner are last")]


class Report(Declared):
    """A report."""

    format: Annotated[int, Means("version of these keys; raised by a breaking change")]
    jmxlake: Annotated[str, Means("version of jmxlake")]
    cluster: Annotated[str, Means("cluster")]
    from_: Annotated[str, Means("start of the report period, widened to whole windows, UTC")]
    to: Annotated[str, Means("end of the report period, widened to whole windows, UTC")]
    time_zone: Annotated[str, Means("time zone of the page; times in JSON are UTC")]
    week: Annotated[Week | None, Means("ISO week of the period; null: it is not a week")]
    generated_at: Annotated[str, Means("time of the report, UTC")]
    running: Annotated[bool, Means("true: the period has not ended")]
    elapsed: Annotated[float, Means("elapsed share of the period, 0 to 1")]
    window_seconds: Annotated[float, Means("length of a window, seconds")]
    min_coverage_percent: Annotated[float, Means("minimum coverage for a good answer, percent")]
    key_figures: Annotated[list[KeyFigure], Means("figures at the start of the report")]
    previous: Annotated[Previous | None, Means(
        "change in the missed objectives since the week before; null: not known")]  # fmt: skip
    answers: Annotated[list[Evidence], Means("state of each question or section of the page")]
    verdicts: Annotated[list[Verdict], Means("verdicts of the objectives, worst first")]
    composites: Annotated[list[Composite], Means(
        "composites on all subjects, and on the subjects of each team and tier")]  # fmt: skip
    objectives: Annotated[list[ObjectiveRow], Means("objectives and their subjects")]
    maintenance: Annotated[list[Maintenance], Means("planned maintenance in the period")]
    corrections: Annotated[list[Correction], Means("corrections that concern a subject")]
    restated: Annotated[list[Restated] | None, Means(
        "subjects whose published figures have changed; null: no "
        "figures were published")]  # fmt: skip
    business_hours: Annotated[BusinessHours | None, Means(
        "objectives over business hours; null: no business hours")]  # fmt: skip
    events: Annotated[list[EventRow] | None, Means(
        "events, most of an error budget first; null: not known")]  # fmt: skip
    incidents: Annotated[list[IncidentOfEvent] | None, Means("incidents; null: not known")]
    incidents_omitted: Annotated[int | None, Means("number of further incidents")]
    service: Annotated[golden_signals.Service, Means("requests, latency and traffic")]
    min_isr: Annotated[
        replication_.MinIsr, Means("partitions under min ISR or leaderless (KIP-164)")
    ]
    replication: Annotated[
        replication_.Replication, Means("missing and moving replicas, unclean leaders")
    ]
    throttling: Annotated[throttling_.Throttling, Means("quotas and throttling (KIP-13)")]
    tier_lag: Annotated[tier_lag_.TierLag, Means("tiered-storage lag (KIP-963)")]
    consumer_lag: Annotated[consumer_groups.ConsumerLag, Means("lag of consumer groups")]
    lost_before_read: Annotated[consumer_groups.LostBeforeRead, Means(
        "offsets deleted before a group had read them (KIP-490)")]  # fmt: skip
    remote_reads: Annotated[
        remote_storage.RemoteReads, Means("reads from remote storage (KIP-1002)")
    ]
    tiering: Annotated[remote_storage.Tiering, Means("use of remote storage")]
    capacity: Annotated[capacity_.Capacity, Means("disk use")]
    own_metrics: Annotated[monitoring.OwnMetrics, Means("metrics without a section of their own")]
    hygiene: Annotated[hygiene_.Hygiene, Means("recommendations")]
    coverage: Annotated[monitoring.Coverage, Means("coverage and gaps")]
    collected: Annotated[list[str], Means("metrics of the questions with data in gold")]
    timelines: Annotated[list[timelines_.Timeline], Means("values of the charts")]
    trends: Annotated[Trends, Means("the last weeks of each objective")]
    racks: Annotated[list[Rack], Means("racks of brokers")]
    changes: Annotated[list[Change], Means("changes in the cluster, in the order of notice")]
    changes_omitted: Annotated[dict[str, int], Means("number of further changes by kind")]
    rejected: Annotated[int, Means("number of rejected rows")]
    detection_floor_us: Annotated[Known, Means(
        "shorter incidents might not be observed, microseconds: 2.5 scrape intervals and twice the "
        "slowest scrape")]  # fmt: skip
    incomplete: Annotated[list[Incomplete], Means(
        "hours in which a table of gold may lack rows; figures of them are not known")]  # fmt: skip
    team: Annotated[str, Means("team of the report; only with --team")]
    owners: Annotated[Owners, Means("cost allocation; only with --owners")]


def racks(scope: Scope) -> list[Rack]:
    """Return the rack of each broker of the period that has one, as it was reported last."""
    sources, subjects = {one.source for one in scope.coverage.sources}, scope.gold.subjects
    rack_of = {one.source: one.rack for one in subjects if one.rack and one.source in sources}
    return [Rack(str(source), rack) for source, rack in sorted(rack_of.items())]


QUESTIONS: Final[tuple[Question, ...]] = (
    replication_.MIN_ISR_QUESTION, throttling_.QUESTION, tier_lag_.QUESTION,
    consumer_groups.LOST_QUESTION, consumer_groups.LAG_QUESTION, remote_storage.QUESTION,
    golden_signals.ANSWERS_QUESTION,
    golden_signals.LATENCY_QUESTION, golden_signals.TRAFFIC_QUESTION, capacity_.CAPACITY_QUESTION,
    replication_.RACKS, hygiene_.HYGIENE_QUESTION, monitoring.QUESTION,
    replication_.REPLICATION_QUESTION,
)  # fmt: skip
"""Questions in the order of ``answers``, with keys of the records."""

for _question in QUESTIONS:
    _question.check()


def metrics_of(questions: Iterable[Question]) -> frozenset[str]:
    """Return the metrics that must have been read to answer questions."""
    return frozenset(one.read for one in questions) - {"any"}


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
    "service": lambda it: golden_signals.service(it.gold, it.statements, it.past),
    "min_isr": lambda it: replication_.min_isr(it.gold, it.statements, it.incidents),
    "replication": lambda it: replication_.replication(it.gold, it.statements, it.changes[0]),
    "throttling": lambda it: throttling_.throttling(it.gold, it.statements),
    "tier_lag": lambda it: tier_lag_.tier_lag(it.gold, it.statements),
    "consumer_lag": lambda it: consumer_groups.consumer_lag(it.gold, it.objectives),
    "lost_before_read": lambda it: it.lost,
    "remote_reads": lambda it: remote_storage.remote_reads(it.gold),
    "tiering": lambda it: remote_storage.tiering(it.gold, it.statements),
    "capacity": lambda it: capacity_.capacity(it.gold),
    "own_metrics": lambda it: it.own_metrics,
    "hygiene": lambda it: hygiene_.hygiene(
        it.gold, {one.family for one in it.coverage.sources if one.observed_us}
    ),
    "coverage": lambda it: it.coverage,
    "collected": lambda it: sorted(it.levels.keys() & metrics_of(QUESTIONS)),
    "timelines": lambda it: timelines_.timelines(it.gold, it.own_metrics),
    "trends": lambda it: trends(it.gold, it.objectives, it.weeks),
    "racks": racks,
    "changes": lambda it: [{**row, "at": iso(row["at"])} for row in it.changes[0]],
    "changes_omitted": lambda it: it.changes[1],
    "rejected": lambda it: monitoring.rejected(it.gold),
    "detection_floor_us": lambda it: monitoring.detection_floor_us(it.coverage),
    "events": lambda it: it.events.events,
    "incidents": lambda it: it.events.incidents,
    "incidents_omitted": lambda it: it.events.incidents_omitted,
    "incomplete": lambda it: [one.to_json() for one in it.gold.incomplete],
}
"""Functions that compute the sections; ``fields.to_json`` writes what they return."""


def answers(facts: Mapping[str, Any]) -> list[Evidence]:
    """Return the decision for every question."""
    return [evidence.decide(facts, one) for one in QUESTIONS]


def question(name: str) -> Question:
    """Return a question by its name in JSON."""
    return next(one for one in QUESTIONS if one.name == name)


def with_answers(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts with ``answers``, by the same decisions that every output takes."""
    return {**facts, "answers": [one._asdict() for one in answers(facts)]}


def shown() -> frozenset[str]:
    """Return the metrics that sections have figures of, as patterns."""
    return frozenset(pattern for question in QUESTIONS for pattern in question.metrics)
