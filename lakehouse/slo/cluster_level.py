"""Statements on several subjects as one: on topics as on their cluster.

Times are summed by weight, so that bounds remain bounds and unknown time remains unknown.
docs/objectives.md compares these figures with those of the worst subject and of the union.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from lakehouse.core.metrics import PARTITION_COUNT
from lakehouse.core.subjects import Subject
from lakehouse.slo.sla_statement import Statement, Times

T = TypeVar("T")


class Weighted(NamedTuple):
    """A statement on several subjects together; its times are weight times microseconds.

    Attributes:
        weight: ``partitions``: the weight of a subject is its number of partitions; ``equal``: it
            is 1; ``partition-time``: the times of partitions themselves are summed.
        subjects: How many subjects.
    """

    statement: Statement
    weight: str
    subjects: int

    def to_json(self) -> dict[str, Any]:
        """The statement as JSON has it."""
        return {
            "cluster": self.statement.subject.cluster,
            "objective": self.statement.objective.name,
            "topic": self.statement.subject.topic,
            "weight": self.weight,
            "subjects": self.subjects,
            **self.statement.figures(),
        }


def by_cluster(statements: Sequence[Statement]) -> list[Weighted]:
    """Each objective over all its subjects of a cluster, topics weighted by their partitions."""
    groups: defaultdict[tuple[str, str], list[Statement]] = defaultdict(list)
    for statement in statements:
        groups[statement.subject.cluster, statement.objective.name].append(statement)
    return [
        Weighted(
            _sum(group), "partitions" if group[0].subject.kind == "topic" else "equal", len(group)
        )
        for group in groups.values()
    ]


def with_clusters(statements: Sequence[Statement]) -> list[Statement]:
    """Statements; under an objective of level ``cluster`` one for each cluster, without alerts."""
    clusters = [statement for statement in statements if statement.objective.level == "cluster"]
    others = [statement for statement in statements if statement.objective.level != "cluster"]
    return others + [weighted.statement for weighted in by_cluster(clusters)]


def _sum(group: Sequence[Statement]) -> Statement:
    """One statement on a group, with the maintenance and the corrections of all its members."""
    total = _weighted_sum(group)
    if planned := _distinct(item for one in group for item in one.maintenance):
        without = _weighted_sum([one.without or one for one in group])
        total = replace(total, maintenance=planned, without=without)
    if corrections := _distinct(item for one in group for item in one.corrections):
        agreed = _weighted_sum([one.agreed or one for one in group])
        total = replace(total, corrections=corrections, agreed=agreed)
    return total


def _distinct(items: Iterable[T]) -> tuple[T, ...]:
    found = list(items)
    return tuple(item for at, item in enumerate(found) if item not in found[:at])


def _weighted_sum(group: Sequence[Statement]) -> Statement:
    weighted = [
        [partition_count(one.subject) * us for us in (one.whole_us, one.ahead_us, *one.times)]
        for one in group
    ]
    expected, ahead, *times = map(sum, zip(*weighted, strict=True))
    first = group[0]
    subject = Subject(first.subject.cluster, "cluster", None, None, None, None, None, 0, 0)
    return Statement(first.objective, subject, expected, Times(*times), first.period, ahead)


def partition_count(subject: Subject) -> int:
    """The last reported number of a topic's partitions; 1 without a report, and of others."""
    count = subject.attributes.get(PARTITION_COUNT)
    return max(1, int(count)) if count else 1
