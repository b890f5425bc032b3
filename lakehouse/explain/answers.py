"""The report's decision on each metric of a story: what its subject's time can state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakehouse.core.metrics import (
    GROUP_LAG,
    PARTITION_LAG,
    UNAVAILABLE,
    Watched,
    families,
    is_of_partitions,
    roles_of,
)
from lakehouse.core.periods import iso
from lakehouse.core.spans import Span, length, overlap
from lakehouse.report import evidence as decisions
from lakehouse.report.facts.coverage import ANY_FAMILY
from lakehouse.tables.source_names import role_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from lakehouse.core.subjects import Subject
    from lakehouse.explain.evidence import Evidence, Scope

_OTHER: Final = "other"
"""Stands for the families that the story is not about."""

_READS: Final = ("incidents", "lost_offsets", "sources")
"""Tables of gold that a story is made of."""

_IS_TIERED: Final = "kafka.topic.remote_storage_enabled"
_OF_TIERS: Final = frozenset({"tiered"})
"""Families of metrics that only topics with remote storage have."""

_READ_WITH: Final = {PARTITION_LAG: GROUP_LAG}
"""Metrics that agents report above a threshold only, each with one that they always report."""


def answers(
    scope: Scope, evidence: Evidence, bad: Collection[str], min_coverage: float
) -> list[dict[str, Any]]:
    """Return the state of each watched metric, and the observed time that it rests on.

    Args:
        scope: The subject, its period and its metrics.
        evidence: Attempts to read its sources.
        bad: The metrics with a bad interval.
        min_coverage: Observed share below which nothing good is said, percent.
    """
    facts = {
        "from": iso(scope.period.span[0]),
        "to": iso(scope.period.span[1]),
        "min_coverage_percent": min_coverage,
        "coverage": _coverage(scope, evidence),
        "objectives": [_objective(one, scope) for one in scope.statements],
        "collected": evidence.collected,
        "incomplete": evidence.incomplete,
    }
    return [_answer(facts, scope.subject, one, is_bad=one.metric in bad) for one in scope.watched]


def _answer(
    facts: dict[str, Any], subject: Subject, watched: Watched, *, is_bad: bool
) -> dict[str, Any]:
    metric = _READ_WITH.get(watched.metric, watched.names_in_bronze[0])
    derived = [UNAVAILABLE] if is_of_partitions(metric) else []
    # Families of a metric that only the lake's catalogue has are not known here.
    read = metric if watched.families else "any"
    # What a story calls bad are rows of these, and no row reads as good.
    judged = (watched.metric, metric, *derived)
    question = decisions.Question(watched.metric, read, gold=_READS, judged=judged)
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
    if families(metric) == _OF_TIERS and subject.attributes.get(_IS_TIERED) == 0:
        return "the topic does not have remote storage enabled"
    roles = roles_of(metric)
    if roles and subject.kind == "source" and role_of(subject.source) not in roles:
        return f"the source is not a {' or '.join(sorted(roles))}"
    return ""


def _coverage(scope: Scope, evidence: Evidence) -> dict[str, Any]:
    """Return the coverage of the subject's sources in the time in which it existed."""
    sources: list[dict[str, Any]] = []
    for source, life in scope.lives.items():
        if (lived := overlap(life, scope.life) if scope.life else None) is None:
            continue
        read = {one.family for one in evidence.attempts if one.source == source}
        # A source that was read for other families only has no attempt here.
        others = {_OTHER if source in evidence.read else ANY_FAMILY}
        for family in sorted(read or others):
            observed = (
                lived[1] - lived[0] if family == _OTHER else _read(evidence, source, family, lived)
            )
            sources.append({
                "source": source,
                "family": family,
                "expected_us": lived[1] - lived[0],
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
    return length(span for span in spans if span)


def _objective(statement: Any, scope: Scope) -> dict[str, Any]:
    subject = {"expected_us": statement.whole_us, "unknown_us": statement.unknown_us}
    period = {"from": iso(scope.period.span[0]), "to": iso(scope.period.span[1])}
    return {"metrics": list(statement.objective.metrics), **period, "subjects": [subject]}
