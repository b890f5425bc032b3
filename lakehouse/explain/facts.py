"""A story from the lake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse import sla
from lakehouse.errors import SubjectError
from lakehouse.existence import with_ends
from lakehouse.explain.evidence import gather
from lakehouse.explain.story import Setting, story
from lakehouse.explain.subject import find
from lakehouse.gold_rows import window_of
from lakehouse.metrics import UNAVAILABLE, WATCHED_OF, Watched
from lakehouse.partitions import OF_PARTITIONS
from lakehouse.periods import micros
from lakehouse.report import words
from lakehouse.report.gather import Gold
from lakehouse.slo import COVERAGE
from lakehouse.spans import overlap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakehouse.existence import Subject
    from lakehouse.explain.subject import Asked
    from lakehouse.periods import Period
    from lakehouse.rollup.engine import Engine
    from lakehouse.sla import Statement
    from lakehouse.slo import Objective
    from lakehouse.spans import Span

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
    """The facts of a subject's story, as docs/explain.md describes them.

    Args:
        engine: Reads gold.
        objectives: What is asked for.
        subject: Its name, as ``find`` reads it.
        period: What the story is about; it is widened to whole windows.
        cluster: Which cluster; may be left out where one only has such a subject.
        now_us: Nothing is expected later than this; by default this instant.

    Raises:
        TableNotFoundError: There is no gold yet.
        PeriodError: Nothing is rolled up yet.
        SubjectError: There is no such subject, or more than one.
    """
    window_seconds = window_of(engine)
    root = engine.lake.root
    known = _known(sla.subjects(engine), root, cluster)
    asked = find(subject, known, root)
    of_cluster = [one for one in known if one.cluster == asked.subject.cluster]
    period = period.aligned(window_seconds)
    gold = Gold(engine, asked.subject.cluster, period, window_seconds)
    gold.check_stretches()
    looked_for = watched(asked.kind, objectives)
    evidence = gather(gold, asked, looked_for)
    now = sla.now_us() if now_us is None else now_us
    lives = _lives(of_cluster, period, now)
    return story(
        Setting(
            asked,
            period,
            window_seconds * 1_000_000,
            now,
            looked_for,
            next((span for one, span in lives if one == asked.subject), None),
            _sources(asked, lives),
            _statements(gold, asked, objectives, of_cluster, now),
        ),
        evidence,
    )


def watched(kind: str, objectives: Iterable[Objective]) -> tuple[Watched, ...]:
    """What a story of a kind looks for: the usual, and what objectives promise of it at zero."""
    found = {one.metric: one for one in WATCHED_OF[kind]}
    for objective in objectives:
        derived = objective.metric in (UNAVAILABLE, COVERAGE) or objective.above > 0
        kinds: set[str] = {objective.level}
        if kinds < _OF_PARTITIONS and objective.metric.startswith(OF_PARTITIONS):
            kinds = _OF_PARTITIONS  # a topic is bad while one of them is
        if kind in kinds and not derived:
            own = Watched(objective.metric, f"Against: {objective.title}", frozenset(), "", "most")
            found.setdefault(objective.metric, own)
    return tuple(found.values())


def _known(every: Sequence[Subject], root: str, cluster: str | None) -> list[Subject]:
    clusters = sorted({one.cluster for one in every})
    if cluster is not None and cluster not in clusters:
        names = ", ".join(words.line(one) for one in clusters) or "none"
        raise SubjectError(f"{words.line(cluster)}: {root} has no such cluster; it has {names}")
    return [one for one in every if cluster in (None, one.cluster)]


def _lives(known: Sequence[Subject], period: Period, now_us: int) -> list[tuple[Subject, Span]]:
    """When the subjects of a cluster existed within the period, and not beyond now."""
    within = (micros(period.start), min(micros(period.end), now_us))
    return [
        (one, span)
        for one, end_us in with_ends(known)
        if (span := overlap((one.first_us, now_us if end_us is None else end_us), within))
    ]


def _sources(asked: Asked, lives: Sequence[tuple[Subject, Span]]) -> dict[str, Span]:
    """Whoever may tell of the subject: of a source itself, else every source."""
    return {
        str(one.source): span
        for one, span in lives
        if one.kind == "source" and (asked.kind != "source" or one == asked.subject)
    }


def _statements(
    gold: Gold,
    asked: Asked,
    objectives: Sequence[Objective],
    known: Sequence[Subject],
    now_us: int,
) -> list[Statement]:
    """What is said of the subject; of a partition its topic's, and its own where there is any."""
    own = (asked.subject.kind, asked.subject.key)
    manner = sla.Manner(window_seconds=gold.window_seconds, only=own)
    stated = sla.read(gold.engine, objectives, gold.period, now_us, known, manner)
    return [
        one
        for one in stated
        if one.subject.key == asked.subject.key and one.subject.partition in (None, asked.partition)
    ]
