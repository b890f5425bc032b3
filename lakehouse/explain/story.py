"""The story of a subject, as docs/explain.md describes it: built from the lake, written as JSON."""

import datetime as dt
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lakehouse.core import display
from lakehouse.core.metrics import COVERAGE, PARTITION_METRICS, UNAVAILABLE, WATCHED_OF, Watched
from lakehouse.core.objective import Objective
from lakehouse.core.observed_share import FLOOR_PERCENT, peak_high
from lakehouse.core.periods import Period, instant, iso, micros, week_of
from lakehouse.core.spans import Span, length, overlap, shared, union
from lakehouse.core.subjects import Subject
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import Row, last_week, subjects, window_of
from lakehouse.errors import SubjectError
from lakehouse.explain.answers import answers
from lakehouse.explain.bad_intervals import UNSEEN, Interval, intervals
from lakehouse.explain.evidence import Evidence, Scope, gather
from lakehouse.explain.find_subject import find
from lakehouse.explain.gaps import Silence, silences as silences_of, unknown as unknown_of
from lakehouse.report.facts.coverage import ANY_FAMILY
from lakehouse.report.facts.gold import Gold
from lakehouse.report.facts_lookup import longest_floor_us
from lakehouse.slo import attainment
from lakehouse.slo.sla_statement import Statement, Times

FORMAT: Final = 1
_OF_PARTITIONS: Final = {"topic", "partition"}
_OF_OBJECTIVE: Final = ("title", "metric", "level", "op", "threshold", "target")
NOTICED_LATE_US: Final = 60_000_000
"""Elections and changes are noticed when the topology is read, once a minute."""


def explain(
    engine: Engine,
    objectives: Sequence[Objective],
    name: str,
    period: Period | dt.tzinfo,
    *,
    cluster: str | None = None,
    now_us: int | None = None,
    min_coverage: float = FLOOR_PERCENT,
) -> dict[str, Any]:
    """The story of a subject, as docs/explain.md describes it.

    Args:
        engine: Reads gold.
        objectives: The objectives of the story.
        name: Its name, as ``find`` reads it.
        period: The period of the story; it is widened to whole windows. A time zone: the week of
            the weekly report there, or if the subject did not exist in it, its last week.
        cluster: Its cluster; needed only if several have such a subject.
        now_us: Nothing is expected later than this; by default this instant.
        min_coverage: Observed share of the expected time below which nothing good is said, percent.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing is rolled up yet.
        SubjectError: There is no such subject, or more than one.
    """
    window_seconds, root = window_of(engine), engine.lake.root
    now_us = attainment.now_us() if now_us is None else now_us
    known = _of_cluster(subjects(engine), root, cluster)
    subject = find(name, known, root)
    known = [one for one in known if one.cluster == subject.cluster]
    if isinstance(period, dt.tzinfo):
        period = _usual_week(engine, subject, now_us, period)
    period = period.aligned(window_seconds)
    gold = Gold(engine, subject.cluster, period, window_seconds)
    gold.check_stretches()
    # What gold has of a partition's time is its topic's.
    kind, key = "topic" if subject.kind == "partition" else subject.kind, subject.key
    within = micros(period.start), min(micros(period.end), now_us)
    lives = {
        (one.kind, one.key): span
        for one, spans, _ in attainment.lifetimes(known, within[1])
        for lived in spans
        if (span := overlap(lived, within))
    }
    options = attainment.Options(window_seconds=window_seconds, only=(kind, key))
    found = attainment.read(engine, objectives, period, now_us, known, options)
    of_key = [one for one in found if one.subject.key == key]
    statements = [one for one in of_key if one.subject.partition in (None, subject.partition)]
    sources = {str(names[-1]): span for (of, names), span in lives.items() if of == "source"}
    if kind == "source":  # no other source reports it
        sources = {name: span for name, span in sources.items() if name == subject.source}
    life, metrics = lives.get((kind, key)), watched(subject.kind, objectives)
    scope = Scope(subject, period, gold.rows.window_us, now_us, metrics, life, sources, statements)
    return story(scope, gather(gold, subject, metrics), min_coverage)


def _usual_week(engine: Engine, subject: Subject, now_us: int, zone: dt.tzinfo) -> Period:
    """The week of the weekly report; if the subject did not exist in it, its last week."""
    week = last_week(engine, now_us, zone)
    start, end = week.span
    existed = subject.first_us < end and subject.last_us > start
    return week if existed else week_of(instant(subject.last_us - 1), zone)


def watched(kind: str, objectives: Iterable[Objective]) -> tuple[Watched, ...]:
    """The metrics of a story: the usual ones of a kind, and those that objectives want at zero."""
    metrics = {one.metric: one for one in WATCHED_OF[kind]}
    for objective in objectives:
        derived = objective.metric in (UNAVAILABLE, COVERAGE) or not objective.is_at_zero
        kinds: set[str] = {objective.level}
        if kinds < _OF_PARTITIONS and objective.metric.startswith(PARTITION_METRICS):
            kinds = _OF_PARTITIONS  # a topic is bad while one of its partitions is
        if kind in kinds and not derived:
            against = Watched(objective.metric, f"Against: {objective.title}", "")
            metrics.setdefault(objective.metric, against)
    return tuple(metrics.values())


def _of_cluster(known: Sequence[Subject], root: str, cluster: str | None) -> list[Subject]:
    clusters = sorted({one.cluster for one in known})
    if cluster is not None and cluster not in clusters:
        names = ", ".join(display.line(name) for name in clusters) or "none"
        raise SubjectError(f"{display.line(cluster)}: {root} has no such cluster; it has {names}")
    return [one for one in known if cluster in (None, one.cluster)]


def story(scope: Scope, evidence: Evidence, min_coverage: float = FLOOR_PERCENT) -> Row:
    """The JSON of a story."""
    silences = silences_of(scope.lives, evidence.attempts, evidence.read)
    subject, exists = scope.subject, scope.life
    metrics = (*scope.watched, UNSEEN) if subject.kind == "source" else scope.watched
    bad = [one for watched in metrics for one in _intervals(watched, evidence, silences)]
    bad.sort(key=lambda one: (one.start, one.end, one.watched.metric))
    read = [one for one in evidence.attempts if one.outcome == "ok"]
    return {
        "format": FORMAT,
        "cluster": subject.cluster,
        "subject": {"kind": subject.kind, **subject.names, "partition": subject.partition},
        "from": iso(micros(scope.period.start)),
        "to": iso(micros(scope.period.end)),
        "generated_at": iso(scope.now_us),
        "window_seconds": scope.window_us // 1_000_000,
        "exists": exists and {"from": iso(exists[0]), "to": iso(exists[1])},
        "objectives": [_objective(one, scope, evidence, silences) for one in scope.statements],
        "min_coverage_percent": min_coverage,
        "answers": answers(scope, evidence, {one.watched for one in bad}, min_coverage),
        "sums": [_sum(watched, bad, silences) for watched in metrics],
        "intervals": _with_context(bad, silences, evidence.events),
        "silences": [_silence(silence) for silence in silences],
        "events": [_event(row) for row in evidence.events],
        "until": None if evidence.until is None else iso(evidence.until),
        "detection_floor_us": longest_floor_us((a.interval_us, a.slowest_us) for a in read),
    }


def _intervals(watched: Watched, evidence: Evidence, silences: Sequence[Silence]) -> list[Interval]:
    """The bad intervals of a metric; of ``UNSEEN`` those in which a source was not read."""
    if watched != UNSEEN:
        return intervals(watched, evidence.incidents, evidence.totals)
    spans = union((one.start, one.end) for one in silences)
    return [Interval(UNSEEN, *span, 0, 0, span[1] - span[0], (0, 0), (), ()) for span in spans]


def _objective(
    statement: Statement, scope: Scope, evidence: Evidence, silences: Sequence[Silence]
) -> Row:
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
        "gaps": [_silence(gap) for gap in _gaps(statement, [one[:2] for one in spans], silences)],
    }


def _gaps(
    statement: Statement, unknown: Sequence[Span], silences: Sequence[Silence]
) -> list[Silence]:
    """What hid an objective's unknown time, where that leaves it undecided."""
    if statement.undecided_us is None:
        return []
    watched = Watched(statement.objective.metric, statement.objective.title, "")
    concerning = [silence for silence in silences if _concerns(silence, watched)]
    hidden = zip(unknown, shared(unknown, concerning), strict=True)
    return [part for span, found in hidden for one in found if (part := one.within(span))]


def _span(span: Span) -> Row:
    return {"start": iso(span[0]), "end": iso(span[1])}


def _bad(span: Span, times: Mapping[int, Times]) -> Row:
    """Bad time of neighbouring windows."""
    within = (times[window] for window in times if span[0] <= window < span[1])
    sums = Times(*map(sum, zip(*within, strict=True)))._asdict()
    del sums["good_us"]
    return {**_span(span), **sums}


def _sum(watched: Watched, bad: Sequence[Interval], silences: Sequence[Silence]) -> Row:
    """All intervals of a metric together; no two leads overlap, so they add up."""
    own, names = [one for one in bad if one.watched == watched], _names(watched)
    silent_us = length((one.start, one.end) for one in silences if _concerns(one, watched))
    return {**names, "intervals": len(own), **_extent(watched, own, silent_us)}


def _names(watched: Watched) -> Row:
    return {"metric": watched.metric, "title": watched.title}


def _extent(watched: Watched, bad: Sequence[Interval], silent_us: int) -> Row:
    """How long intervals lasted together; the maximum of gauges, the sum of counters.

    Events of counters have no length, and time that was not seen has no worst value. Beside
    silences the worst value has no high bound.
    """
    each = [(one.end - one.start, one.sure_us, one.end - one.start + one.lead_us) for one in bad]
    times = (sum(us) for us in zip((0, 0, 0), *each, strict=True))
    names = ("lasted_us", "lasted_low_us", "lasted_high_us")
    lasted = dict.fromkeys(names) if watched.is_counter else dict(zip(names, times, strict=True))
    low: float | None = None if watched == UNSEEN else 0.0
    high = low
    if bad and watched != UNSEEN:
        combine = sum if watched.is_counter else max
        low, high = (combine(interval.worst[end] for interval in bad) for end in (0, 1))
    return {
        **lasted, "worst_low": low, "worst_high": peak_high(high, silent_us), "unit": watched.unit
    }  # fmt: skip


def _with_context(
    bad: Sequence[Interval], silences: Sequence[Silence], events: Sequence[Row]
) -> list[Row]:
    """The intervals, each with the silences and the events in it."""
    instants = [row["at"] for row in events]
    rows: dict[Interval, Row] = {}
    for watched in dict.fromkeys(one.watched for one in bad):
        of_metric = [one for one in bad if one.watched == watched]
        spans = [(one.start - one.lead_us, one.end) for one in of_metric]
        silent = shared(spans, [one for one in silences if _concerns(one, watched)])
        for interval, span, of_span in zip(of_metric, spans, silent, strict=True):
            wide = (span[0] - NOTICED_LATE_US, span[1] + NOTICED_LATE_US)
            first, end = (bisect_left(instants, edge) for edge in wide)
            within = [part for one in of_span if (part := one.within(span))]
            silent_us = length((one.start, one.end) for one in within)
            rows[interval] = {
                **_names(watched),
                **_span((interval.start, interval.end)),
                "lead_us": None if watched.is_counter else interval.lead_us,
                "tail_us": None if watched.is_counter else interval.tail_us,
                **_extent(watched, [interval], silent_us),
                "parts": list(interval.parts),
                "told_by": list(interval.sources),
                "silent": [_silence(one) for one in within],
                "events": [_event(row) for row in events[first:end]],
            }
    return [rows[one] for one in bad]


def _concerns(silence: Silence, watched: Watched) -> bool:
    """Whether the source could have reported the metric."""
    families = watched.families
    return not families or silence.family in families or silence.family == ANY_FAMILY


def _silence(silence: Silence) -> Row:
    return {**silence._asdict(), **_span((silence.start, silence.end))}


def _event(row: Row) -> Row:
    return {**row, "at": iso(row["at"])}
