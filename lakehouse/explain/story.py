"""The story of a subject as JSON, see docs/explain.md, built from the lake.

Its answers are the report's decisions on each of its metrics.
"""

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lakehouse.core import metrics, periods
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, Span, iso, overlap, shared
from lakehouse.core.subjects import FLOOR_PERCENT, Subject, peak_high
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import Row, last_week, subjects, window_of
from lakehouse.explain.evidence import Evidence, Gap, gaps_of, gather, intervals, unknown_spans
from lakehouse.explain.subject import NO_EVENTS, Events, facts_of, find, of_subject
from lakehouse.report import evidence as decisions
from lakehouse.report.facts import fields
from lakehouse.report.facts.build import head, without_history
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.statement_rows import budget, observed_percent, or_no_data
from lakehouse.report.facts.sections.monitoring import ANY_FAMILY
from lakehouse.report.figures import longest_floor_us
from lakehouse.report.owners import NO_OWNERS, Owners, shown
from lakehouse.slo import attainment
from lakehouse.slo.report_calendar import OF_UTC, Calendar
from lakehouse.slo.sla_statement import Statement, Times
from lakehouse.tables.agent_names import role_of

FORMAT: Final = 2
_OTHER: Final = "other"
"""Placeholder for all families that the story does not use."""

_READS: Final = ("incidents", "lost_offsets", "sources")
"""Tables of gold that a story reads."""

_IS_TIERED: Final = "kafka.topic.remote_storage_enabled"
_OF_TIERS: Final = ("tiered", "remote_log")
"""Families of metrics that only topics with remote storage have."""

_READ_WITH: Final = {metrics.PARTITION_LAG: metrics.GROUP_LAG}
"""Metrics that agents report above a threshold only, each with a metric that is always reported."""

_OF_PARTITIONS: Final = {"topic", "partition"}
_OF_OBJECTIVE: Final = ("title", "metric", "level", "op", "threshold", "target")


class Scope(NamedTuple):
    """The subject of a story, its period and its objectives; instants in microseconds.

    Attributes:
        subject: A row of gold/subjects, or a partition of a topic.
        period: Whole windows.
        window_us: Length of a window.
        now_us: The present; nothing is expected later.
        watched: The metrics of the story.
        life: Active period of the subject within the period; None: it did not exist.
        lives: Expected time within the period of each source that may report it.
        statements: Attainments of its objectives. A partition has the statements on its topic.
    """

    subject: Subject
    period: Period
    window_us: int
    now_us: int
    watched: Sequence[metrics.Watched]
    life: Span | None
    lives: Mapping[str, Span]
    statements: Sequence[Statement]


def explain(  # noqa: PLR0913 - the options of a report
    engine: Engine,
    objectives: Sequence[Objective],
    name: str,
    period: Period | None,
    *,
    calendar: Calendar = OF_UTC,
    cluster: str | None = None,
    now_us: int | None = None,
    min_coverage: float = FLOOR_PERCENT,
    owners: Owners = NO_OWNERS,
) -> dict[str, Any]:
    """Return the story of a subject, see docs/explain.md.

    Args:
        engine: Reads gold.
        objectives: The objectives of the story.
        name: Its name, as ``find`` reads it.
        period: The period of the story; it is widened to whole windows. None: the week of the
            weekly report, or if the subject did not exist in it, its last week.
        calendar: The time zone of weeks and of shown instants, maintenance and corrections.
        cluster: Its cluster; needed only if several have such a subject.
        now_us: The present; nothing is expected later. Default: this instant.
        min_coverage: Minimum coverage for a good answer, percent.
        owners: Owners of the subject and of events.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Gold has no rollup yet.
        SubjectError: The name is unknown or ambiguous.
    """
    window_seconds, root = window_of(engine), engine.lake.root
    now_us = periods.now_us() if now_us is None else now_us
    every = subjects(engine)
    subject = find(name, every, root, cluster)
    known = [one for one in every if one.cluster == subject.cluster]
    period = period or _usual_week(engine, subject, now_us, calendar.zone)
    gold = Gold(
        engine, subject.cluster, period.aligned(window_seconds), window_seconds, known, now_us
    )
    gold.check_stretches()
    scope = _scope(gold, objectives, subject)
    report = without_history(gold, objectives, calendar, min_coverage)
    evidence = gather(gold, subject, scope.watched, frozenset(report.levels))
    events = of_subject(facts_of(report, owners), subject)
    made = story(scope, evidence, min_coverage, events)
    owner = shown(owners.labels(subject.names))
    return {**head(gold, calendar, min_coverage), **made, "owner": owner}


def _scope(gold: Gold, objectives: Sequence[Objective], subject: Subject) -> Scope:
    # Gold has the time of a partition's topic only.
    kind, key = "topic" if subject.kind == "partition" else subject.kind, subject.key
    start, end = gold.period.span
    within = start, min(end, gold.now_us)
    lives = {
        (one.kind, one.key): span
        for one, spans, _ in attainment.lifetimes(gold.subjects, within[1])
        for lived in spans
        if (span := overlap(lived, within))
    }
    every = gold.statements(objectives, only=(kind, key), own_windows=True)
    of_key = [one for one in every if one.subject.key == key]
    statements = [one for one in of_key if one.subject.partition in (None, subject.partition)]
    sources = {str(names[-1]): span for (of, names), span in lives.items() if of == "source"}
    if kind == "source":  # no other source reports it
        sources = {name: span for name, span in sources.items() if name == subject.source}
    return Scope(
        subject, gold.period, gold.rows.window_us, gold.now_us, watched(subject.kind, objectives),
        lives.get((kind, key)), sources, statements,
    )  # fmt: skip


def _usual_week(engine: Engine, subject: Subject, now_us: int, zone: dt.tzinfo) -> Period:
    """Return the week of the weekly report; if the subject did not exist in it, its last week."""
    week = last_week(engine, now_us, zone)
    start, end = week.span
    existed = subject.first_us < end and subject.last_us > start
    return week if existed else periods.week_of(periods.instant(subject.last_us - 1), zone)


def watched(kind: str, objectives: Iterable[Objective]) -> tuple[metrics.Watched, ...]:
    """Return the metrics of a story: the usual metrics of a kind, and objectives' at zero."""
    found = {one.metric: one for one in metrics.WATCHED_OF[kind]}
    for objective in objectives:
        is_derived = objective.metric in (metrics.UNAVAILABLE, metrics.COVERAGE)
        kinds: set[str] = {objective.level}
        if kinds < _OF_PARTITIONS and metrics.is_of_partitions(objective.metric):
            kinds = _OF_PARTITIONS  # a topic is bad while one of its partitions is
        if kind in kinds and objective.is_at_zero and not is_derived:
            against = metrics.Watched(objective.metric, objective.title, "")
            found.setdefault(objective.metric, against)
    return tuple(found.values())


def story(
    scope: Scope,
    evidence: Evidence,
    min_coverage: float = FLOOR_PERCENT,
    events: Events = NO_EVENTS,
) -> Row:
    """Return the JSON of a story; it starts as report.json does."""
    gaps = gaps_of(scope.lives, evidence.attempts, evidence.read)
    subject, exists = scope.subject, scope.life
    bad = [row for metric in scope.watched for row in _intervals(metric, evidence, gaps)]
    bad.sort(key=lambda row: (row["start"], row["end"], row["metric"]))
    read = [one for one in evidence.attempts if one.outcome == "ok"]
    return {
        "format": FORMAT,
        "subject": {"kind": subject.kind, **subject.names, "partition": subject.partition},
        "exists": exists and {"from": iso(exists[0]), "to": iso(exists[1])},
        "events": events.rows,
        "events_in_report": events.total,
        "events_reason": events.reason,
        "objectives": [
            {**_objective(one, scope, evidence, gaps), **_budget(one, scope, min_coverage)}
            for one in scope.statements
        ],
        "answers": answers(scope, evidence, {row["metric"] for row in bad}, min_coverage),
        "intervals": bad,
        "gaps": [_gap(gap) for gap in gaps],
        "changes": [{**row, "at": iso(row["at"])} for row in evidence.changes],
        "until": None if evidence.until is None else iso(evidence.until),
        "detection_floor_us": longest_floor_us((a.interval_us, a.slowest_us) for a in read),
    }


def _objective(statement: Statement, scope: Scope, evidence: Evidence, gaps: Sequence[Gap]) -> Row:
    objective = statement.objective
    times = evidence.times.get(objective.name, {})
    known = {window: sums.good_us + sums.bad_us for window, sums in times.items()}
    spans = unknown_spans(scope.life, scope.window_us, known) if scope.life else []
    # The windows are the topic's; the intervals show when a single partition was bad.
    of_topic = statement.subject.partition is None
    bad = [window for window, sums in times.items() if sums.bad_high_us and of_topic]
    windows = periods.union((at, at + scope.window_us) for at in bad)
    return {
        "objective": objective.name,
        **{key: getattr(objective, key) for key in _OF_OBJECTIVE},
        **statement.figures(),
        "unknown_counts": objective.unknown,
        "interval_verdict": statement.interval_verdict,
        "bad": [_bad(one, times) for one in windows],
        "unknown": [{**_span((start, end)), "unknown_us": us} for start, end, us in spans],
        "undecided_us": statement.undecided_us,
        "gaps": [_gap(one) for one in _hiding(statement, [one[:2] for one in spans], gaps)],
    }


def _budget(statement: Statement, scope: Scope, min_coverage: float) -> Row:
    """Return the status and the used error budget, by the functions of the report."""
    subject = {**statement.figures(), **statement.details(brief=True)}
    objective = {**statement.scope(), "target": statement.objective.target}
    running = scope.now_us < scope.period.span[1] or statement.ahead_us > 0
    found = budget(subject, objective, running=running)
    status = or_no_data(found["status"], observed_percent([subject]), min_coverage)
    return {**found, "status": status}


def _hiding(statement: Statement, unknown: Sequence[Span], gaps: Sequence[Gap]) -> list[Gap]:
    """Return the gaps in an undecided objective's unknown time."""
    if statement.undecided_us is None:
        return []
    watched = metrics.Watched(statement.objective.metric, statement.objective.title, "")
    concerning = [gap for gap in gaps if _concerns(gap, watched)]
    hidden = zip(unknown, shared(unknown, concerning), strict=True)
    return [part for span, found in hidden for one in found if (part := one.within(span))]


def _span(span: Span) -> Row:
    return {"start": iso(span[0]), "end": iso(span[1])}


def _bad(span: Span, times: Mapping[int, Times]) -> Row:
    """Return the bad time of neighbouring windows."""
    within = (times[window] for window in times if span[0] <= window < span[1])
    sums = Times(*map(sum, zip(*within, strict=True)))._asdict()
    del sums["good_us"]
    return {**_span(span), **sums}


def _intervals(watched: metrics.Watched, evidence: Evidence, gaps: Sequence[Gap]) -> Iterable[Row]:
    """Yield the bad intervals of a metric.

    An interval of a counter has no length. A gap can hide a worse value, so with a gap the worst
    value has no high bound.
    """
    bad = intervals(watched, evidence.incidents, evidence.totals)
    spans = [(one.start - one.lead_us, one.end) for one in bad]
    hidden = shared(spans, [one for one in gaps if _concerns(one, watched)])
    for one, missing in zip(bad, hidden, strict=True):
        lasted, (low, high) = one.end - one.start, one.worst
        times = {
            "lead_us": one.lead_us,
            "tail_us": one.tail_us,
            "lasted_us": lasted,
            "lasted_low_us": one.sure_us,
            "lasted_high_us": lasted + one.lead_us,
        }
        yield {
            "metric": watched.metric,
            "title": watched.title,
            **_span((one.start, one.end)),
            **(dict.fromkeys(times) if watched.is_counter else times),
            "worst_low": low,
            "worst_high": peak_high(high, len(missing)),
            "unit": watched.unit,
            "parts": list(one.parts),
            "sources": list(one.sources),
        }


def _concerns(gap: Gap, watched: metrics.Watched) -> bool:
    """Return whether the source could have reported the metric."""
    families = watched.families
    return not families or gap.family in families or gap.family == ANY_FAMILY


def _gap(gap: Gap) -> Row:
    return {**gap._asdict(), **_span((gap.start, gap.end))}


def answers(
    scope: Scope, evidence: Evidence, bad: Collection[str], min_coverage: float
) -> list[dict[str, Any]]:
    """Return the state of each watched metric, and the observed time that it rests on.

    Args:
        scope: The subject, its period and its metrics.
        evidence: Attempts to read its sources.
        bad: The metrics with a bad interval.
        min_coverage: Minimum coverage for a good answer, percent.
    """
    period = {"from": iso(scope.period.span[0]), "to": iso(scope.period.span[1])}
    objectives = [
        {"metrics": [*one.objective.metrics], **period,
         "subjects": [{"expected_us": one.whole_us, "unknown_us": one.unknown_us}]}
        for one in scope.statements
    ]  # fmt: skip
    facts = {
        **period,
        "min_coverage_percent": min_coverage,
        "coverage": _coverage(scope, evidence),
        "objectives": objectives,
        "collected": evidence.collected,
        "incomplete": evidence.incomplete,
    }
    return [_answer(facts, scope.subject, one, is_bad=one.metric in bad) for one in scope.watched]


def _answer(
    facts: dict[str, Any], subject: Subject, watched: metrics.Watched, *, is_bad: bool
) -> dict[str, Any]:
    metric = _READ_WITH.get(watched.metric, watched.names_in_bronze[0])
    derived = [metrics.UNAVAILABLE] if metrics.is_of_partitions(metric) else []
    # Families of a metric in the lake's own catalogue are not known here.
    read = metric if watched.families else "any"
    # Rows of these metrics are bad in a story, and no row means good.
    judged = (watched.metric, metric, *derived)
    question = fields.Question(watched.metric, read, gold=_READS, judged=judged)
    found = decisions.decide(facts, question, bad=is_bad)
    if not is_bad and (why := _inapplicable(subject, watched.metric)):
        found = found._replace(state="not_applicable", reason=f"Not applicable: {why}.")
    names = ("state", "observed_percent", "expected_us", "observed_us", "reason")
    return {
        "metric": watched.metric,
        "title": watched.title,
        **{name: getattr(found, name) for name in names},
    }


def _inapplicable(subject: Subject, metric: str) -> str:
    """Return why a subject does not have a metric; empty: it has it, or that is not known."""
    is_of_tiers = bool(read_by := metrics.families(metric)) and read_by.issubset(_OF_TIERS)
    if is_of_tiers and subject.attributes.get(_IS_TIERED) == 0:
        return "the topic does not have remote storage enabled"
    roles = metrics.roles_of(metric)
    if roles and subject.kind == "source" and role_of(subject.source) not in roles:
        return f"the source is not a {' or '.join(sorted(roles))}"
    return ""


def _coverage(scope: Scope, evidence: Evidence) -> dict[str, Any]:
    """Return the coverage of the subject's sources in its active period."""
    sources: list[dict[str, Any]] = []
    for source, life in scope.lives.items():
        if (lived := overlap(life, scope.life) if scope.life else None) is None:
            continue
        read = {one.family for one in evidence.attempts if one.source == source}
        # A source that was read for other families only has no attempt here.
        others = {_OTHER if source in evidence.read else ANY_FAMILY}
        for family in sorted(read or others):
            expected = lived[1] - lived[0]
            observed = expected if family == _OTHER else _read(evidence, source, family, lived)
            sources.append({
                "source": source, "family": family, "expected_us": expected,
                "observed_us": observed,
            })  # fmt: skip
    total, seen = (sum(one[key] for one in sources) for key in ("expected_us", "observed_us"))
    return {"sources": sources, "expected_us": total, "observed_us": seen}


def _read(evidence: Evidence, source: str, family: str, life: Span) -> int:
    spans = (
        overlap((one.start, one.end), life)
        for one in evidence.attempts
        if (one.source, one.family, one.outcome) == (source, family, "ok")
    )
    return periods.length(span for span in spans if span)
