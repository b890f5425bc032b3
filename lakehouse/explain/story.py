"""The story of a subject as JSON, see docs/explain.md, built from the lake."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lakehouse.core import display, periods
from lakehouse.core.metrics import COVERAGE, UNAVAILABLE, WATCHED_OF, Watched, is_of_partitions
from lakehouse.core.objective import Objective
from lakehouse.core.observed_share import FLOOR_PERCENT, peak_high
from lakehouse.core.periods import Period, Span, instant, iso, overlap, shared, union, week_of
from lakehouse.core.subjects import Subject
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import Row, last_week, subjects, window_of
from lakehouse.errors import SubjectError
from lakehouse.explain.evidence import Evidence, Scope, answers, gather
from lakehouse.explain.intervals import Gap, gaps as gaps_of, intervals, unknown as unknown_of
from lakehouse.explain.subject import NO_EVENTS, Events, facts_of, find, of_subject
from lakehouse.report.facts.build import head, without_history
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts.objectives.statement_rows import budget, observed_percent, or_no_data
from lakehouse.report.facts.sections.monitoring import ANY_FAMILY
from lakehouse.report.figures import longest_floor_us
from lakehouse.report.owners import NO_OWNERS, Owners, shown
from lakehouse.slo import attainment
from lakehouse.slo.report_calendar import OF_UTC, Calendar
from lakehouse.slo.sla_statement import Statement, Times

FORMAT: Final = 2
_OF_PARTITIONS: Final = {"topic", "partition"}
_OF_OBJECTIVE: Final = ("title", "metric", "level", "op", "threshold", "target")


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
    known = _of_cluster(subjects(engine), root, cluster)
    subject = find(name, known, root)
    known = [one for one in known if one.cluster == subject.cluster]
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
    of_key = [
        one for one in gold.statements(objectives, only=(kind, key)) if one.subject.key == key
    ]
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
    return week if existed else week_of(instant(subject.last_us - 1), zone)


def watched(kind: str, objectives: Iterable[Objective]) -> tuple[Watched, ...]:
    """Return the metrics of a story: the usual metrics of a kind, and objectives' at zero."""
    metrics = {one.metric: one for one in WATCHED_OF[kind]}
    for objective in objectives:
        derived = objective.metric in (UNAVAILABLE, COVERAGE) or not objective.is_at_zero
        kinds: set[str] = {objective.level}
        if kinds < _OF_PARTITIONS and is_of_partitions(objective.metric):
            kinds = _OF_PARTITIONS  # a topic is bad while one of its partitions is
        if kind in kinds and not derived:
            against = Watched(objective.metric, objective.title, "")
            metrics.setdefault(objective.metric, against)
    return tuple(metrics.values())


def _of_cluster(known: Sequence[Subject], root: str, cluster: str | None) -> list[Subject]:
    clusters = sorted({one.cluster for one in known})
    if cluster is not None and cluster not in clusters:
        names = ", ".join(display.line(name) for name in clusters) or "none"
        raise SubjectError(f"cluster {display.line(cluster)} is not in {root}. Clusters: {names}")
    return [one for one in known if cluster in (None, one.cluster)]


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
    spans = unknown_of(scope.life, scope.window_us, known) if scope.life else []
    # The windows are the topic's; the intervals show when a single partition was bad.
    of_topic = statement.subject.partition is None
    bad = [window for window, sums in times.items() if sums.bad_high_us and of_topic]
    return {
        "objective": objective.name,
        **{key: getattr(objective, key) for key in _OF_OBJECTIVE},
        **statement.figures(),
        "unknown_counts": objective.unknown,
        "interval_verdict": statement.interval_verdict,
        "bad": [_bad(one, times) for one in union((at, at + scope.window_us) for at in bad)],
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
    watched = Watched(statement.objective.metric, statement.objective.title, "")
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


def _intervals(watched: Watched, evidence: Evidence, gaps: Sequence[Gap]) -> Iterable[Row]:
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


def _concerns(gap: Gap, watched: Watched) -> bool:
    """Return whether the source could have reported the metric."""
    families = watched.families
    return not families or gap.family in families or gap.family == ANY_FAMILY


def _gap(gap: Gap) -> Row:
    return {**gap._asdict(), **_span((gap.start, gap.end))}
