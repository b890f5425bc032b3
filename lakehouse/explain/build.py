"""Builds a story from the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.core import formats
from lakehouse.core.lifetimes import with_ends
from lakehouse.core.metrics import UNAVAILABLE, WATCHED_OF, Watched
from lakehouse.core.time.intervals import overlap
from lakehouse.core.time.periods import micros
from lakehouse.engines.gold_reader import window_of
from lakehouse.errors import SubjectError
from lakehouse.explain.queries import gather
from lakehouse.explain.story import Scope, story
from lakehouse.explain.subject import find
from lakehouse.report.facts.gold import Gold
from lakehouse.slo import COVERAGE, attainment
from lakehouse.slo.openslo.sources import PARTITION_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakehouse.core.lifetimes import Subject
    from lakehouse.core.time.intervals import Span
    from lakehouse.core.time.periods import Period
    from lakehouse.engines.engine import Engine
    from lakehouse.explain.subject import Target
    from lakehouse.slo import Objective
    from lakehouse.slo.attainment import Statement

_OF_PARTITIONS: Final = {"topic", "partition"}


def explain(
    engine: Engine,
    objectives: Sequence[Objective],
    subject: str,
    period: Period,
    *,
    cluster: str | None = None,
    now_us: int | None = None,
) -> dict[str, Any]:
    """The story of a subject, as docs/explain.md describes it.

    Args:
        engine: Reads gold.
        objectives: The objectives of the story.
        subject: Its name, as ``find`` reads it.
        period: The period of the story; it is widened to whole windows.
        cluster: Its cluster; needed only if several have such a subject.
        now_us: Nothing is expected later than this; by default this instant.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing is rolled up yet.
        SubjectError: There is no such subject, or more than one.
    """
    window_seconds = window_of(engine)
    root = engine.lake.root
    known = _of_cluster(attainment.subjects(engine), root, cluster)
    target = find(subject, known, root)
    known = [one for one in known if one.cluster == target.subject.cluster]
    period = period.aligned(window_seconds)
    gold = Gold(engine, target.subject.cluster, period, window_seconds)
    metrics = watched(target.kind, objectives)
    evidence = gather(gold, target, metrics)
    now = attainment.now_us() if now_us is None else now_us
    lives = _lives(known, period, now)
    scope = Scope(
        target,
        period,
        window_seconds * 1_000_000,
        now,
        metrics,
        next((span for one, span in lives if one == target.subject), None),
        _sources(target, lives),
        _statements(gold, target, objectives, known, now),
    )
    return story(scope, evidence)


def watched(kind: str, objectives: Iterable[Objective]) -> tuple[Watched, ...]:
    """The metrics of a story: the usual ones of a kind, and those that objectives want at zero."""
    metrics = {one.metric: one for one in WATCHED_OF[kind]}
    for objective in objectives:
        derived = objective.metric in (UNAVAILABLE, COVERAGE) or objective.above > 0
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
        names = ", ".join(formats.line(name) for name in clusters) or "none"
        raise SubjectError(f"{formats.line(cluster)}: {root} has no such cluster; it has {names}")
    return [one for one in known if cluster in (None, one.cluster)]


def _lives(known: Sequence[Subject], period: Period, now_us: int) -> list[tuple[Subject, Span]]:
    """When the subjects of a cluster existed within the period, and not beyond now."""
    within = (micros(period.start), min(micros(period.end), now_us))
    return [
        (one, span)
        for one, end_us in with_ends(known)
        if (span := overlap((one.first_us, now_us if end_us is None else end_us), within))
    ]


def _sources(target: Target, lives: Sequence[tuple[Subject, Span]]) -> dict[str, Span]:
    """The sources that may report the subject: every source, or the subject itself."""
    return {
        str(one.source): span
        for one, span in lives
        if one.kind == "source" and (target.kind != "source" or one == target.subject)
    }


def _statements(
    gold: Gold,
    target: Target,
    objectives: Sequence[Objective],
    known: Sequence[Subject],
    now_us: int,
) -> list[Statement]:
    """The attainments of the subject; of a partition its topic's, and its own if there are any."""
    key, partition = target.subject.key, target.partition
    own = (target.subject.kind, key)
    options = attainment.Options(window_seconds=gold.window_seconds, only=own)
    statements = attainment.read(gold.engine, objectives, gold.period, now_us, known, options)
    return [
        one
        for one in statements
        if one.subject.key == key and one.subject.partition in (None, partition)
    ]
