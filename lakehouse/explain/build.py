"""Builds a story from the lake."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from lakehouse.core import display
from lakehouse.core.metrics import COVERAGE, PARTITION_METRICS, UNAVAILABLE, WATCHED_OF, Watched
from lakehouse.core.objective import Objective
from lakehouse.core.periods import Period, micros, overlap
from lakehouse.core.subjects import Subject
from lakehouse.engines.engine import Engine
from lakehouse.engines.gold_reader import window_of
from lakehouse.errors import SubjectError
from lakehouse.explain.evidence import gather
from lakehouse.explain.find_subject import find
from lakehouse.explain.story_json import Scope, story
from lakehouse.report.facts.gold import Gold
from lakehouse.slo import attainment

_OF_PARTITIONS: Final = {"topic", "partition"}


def explain(
    engine: Engine,
    objectives: Sequence[Objective],
    name: str,
    period: Period,
    *,
    cluster: str | None = None,
    now_us: int | None = None,
) -> dict[str, Any]:
    """The story of a subject, as docs/explain.md describes it.

    Args:
        engine: Reads gold.
        objectives: The objectives of the story.
        name: Its name, as ``find`` reads it.
        period: The period of the story; it is widened to whole windows.
        cluster: Its cluster; needed only if several have such a subject.
        now_us: Nothing is expected later than this; by default this instant.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing is rolled up yet.
        SubjectError: There is no such subject, or more than one.
    """
    window_seconds, root = window_of(engine), engine.lake.root
    now_us = attainment.now_us() if now_us is None else now_us
    known = _of_cluster(attainment.subjects(engine), root, cluster)
    subject = find(name, known, root)
    known = [one for one in known if one.cluster == subject.cluster]
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
    return story(scope, gather(gold, subject, metrics))


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
