"""The record of report.json, the functions of its sections, and the questions that these answer."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, NamedTuple

from lakehouse.core.periods import iso
from lakehouse.report import evidence
from lakehouse.report.evidence import Evidence, Question
from lakehouse.report.facts import fields
from lakehouse.report.facts.events.event_records import Event, IncidentOfEvent
from lakehouse.report.facts.fields import SOURCE, Declared, Known, Means
from lakehouse.report.facts.key_figures.key_figures import KeyFigure, Previous
from lakehouse.report.facts.objectives.composites import Composite, composites
from lakehouse.report.facts.objectives.statement_rows import (
    Change,
    Correction,
    Incomplete,
    Maintenance,
    Objective,
)
from lakehouse.report.facts.objectives.verdicts import (
    BusinessHours,
    Restated,
    Verdict,
    business_hours,
    restated,
    verdicts,
)
from lakehouse.report.facts.objectives.weeks import Trends, trends
from lakehouse.report.facts.owners.owner_accounts import Account
from lakehouse.report.facts.scope import Scope
from lakehouse.report.facts.sections import (
    consumer_groups,
    coverage as coverage_,
    golden_signals,
    hygiene as hygiene_,
    min_isr as min_isr_,
    remote_reads as remote_reads_,
    replication as replication_,
    storage,
    throttling as throttling_,
    tier_lag as tier_lag_,
)
from lakehouse.report.facts.sections.consumer_groups import (
    ConsumerLag,
    LostBeforeRead,
    consumer_lag,
)
from lakehouse.report.facts.sections.coverage import Coverage, detection_floor_us, rejected
from lakehouse.report.facts.sections.golden_signals import Service, service
from lakehouse.report.facts.sections.hygiene import Hygiene, hygiene
from lakehouse.report.facts.sections.min_isr import MinIsr, min_isr
from lakehouse.report.facts.sections.other_metrics import OwnMetrics
from lakehouse.report.facts.sections.remote_reads import RemoteReads, remote_reads
from lakehouse.report.facts.sections.replication import Replication, replication
from lakehouse.report.facts.sections.storage import Capacity, Tiering, capacity, tiering
from lakehouse.report.facts.sections.throttling import Throttling, throttling
from lakehouse.report.facts.sections.tier_lag import TierLag, tier_lag
from lakehouse.report.facts.sections.timelines import Timeline, timelines


class Rack(NamedTuple):
    """The rack of a broker."""

    source: Annotated[str, SOURCE]
    rack: Annotated[str, Means("its rack as last reported")]


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
    objectives: Annotated[list[Objective], Means("objectives and their subjects")]
    maintenance: Annotated[list[Maintenance], Means("planned maintenance in the period")]
    corrections: Annotated[list[Correction], Means("corrections that concern a subject")]
    restated: Annotated[list[Restated] | None, Means(
        "subjects whose published figures have changed; null: no "
        "figures were published")]  # fmt: skip
    business_hours: Annotated[BusinessHours | None, Means(
        "objectives over business hours; null: no business hours")]  # fmt: skip
    events: Annotated[list[Event] | None, Means(
        "events, most of an error budget first; null: not known")]  # fmt: skip
    incidents: Annotated[list[IncidentOfEvent] | None, Means("incidents; null: not known")]
    incidents_omitted: Annotated[int | None, Means("number of further incidents")]
    service: Annotated[Service, Means("requests, latency and traffic")]
    min_isr: Annotated[MinIsr, Means("partitions under min ISR or leaderless (KIP-164)")]
    replication: Annotated[Replication, Means("missing and moving replicas, unclean leaders")]
    throttling: Annotated[Throttling, Means("quotas and throttling (KIP-13)")]
    tier_lag: Annotated[TierLag, Means("tiered-storage lag (KIP-963)")]
    consumer_lag: Annotated[ConsumerLag, Means("lag of consumer groups")]
    lost_before_read: Annotated[LostBeforeRead, Means(
        "offsets deleted before a group had read them (KIP-490)")]  # fmt: skip
    remote_reads: Annotated[RemoteReads, Means("reads from remote storage (KIP-1002)")]
    tiering: Annotated[Tiering, Means("use of remote storage")]
    capacity: Annotated[Capacity, Means("disk use")]
    own_metrics: Annotated[OwnMetrics, Means("metrics without a section of their own")]
    hygiene: Annotated[Hygiene, Means("recommendations")]
    coverage: Annotated[Coverage, Means("coverage and gaps")]
    collected: Annotated[list[str], Means("metrics of the questions with data in gold")]
    timelines: Annotated[list[Timeline], Means("values of the charts")]
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
    min_isr_.QUESTION, throttling_.QUESTION, tier_lag_.QUESTION, consumer_groups.LOST_QUESTION,
    consumer_groups.LAG_QUESTION, remote_reads_.QUESTION, golden_signals.ANSWERS_QUESTION,
    golden_signals.LATENCY_QUESTION, golden_signals.TRAFFIC_QUESTION, storage.QUESTION,
    min_isr_.RACKS, hygiene_.QUESTION, coverage_.QUESTION, replication_.QUESTION,
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
    "service": lambda it: service(it.gold, it.statements, it.past),
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
    "collected": lambda it: sorted(it.levels.keys() & metrics_of(QUESTIONS)),
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
    return frozenset(
        pattern
        for question in QUESTIONS
        for shows in question.shows
        for pattern in ([shows] if isinstance(shows, str) else fields.metrics_of(shows))
    )
