"""The decisions of a report on all questions, which every output takes from here."""

from collections.abc import Mapping
from typing import Any

from lakehouse.report import evidence
from lakehouse.report.evidence import Evidence, Question
from lakehouse.report.facts import record_keys
from lakehouse.report.facts.report_record import QUESTIONS


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
        for pattern in ([shows] if isinstance(shows, str) else record_keys.metrics(shows))
    )
