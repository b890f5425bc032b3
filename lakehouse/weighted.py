"""Figures of many as one: of topics as their cluster's, of partitions as their topic's.

Sums of times by weight, so that bounds stay bounds and unknown time stays unknown. What they mean
beside the worst subject and beside the union is in docs/objectives.md.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.existence import Subject
from lakehouse.metrics import PARTITIONS_TOLD
from lakehouse.statement import Statement, Times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakehouse.maintenance import Maintenance
_WEIGHTS: Final = {"topic": "partitions"}


class Weighted(NamedTuple):
    """What is said of several subjects together; its times are weight times microseconds.

    Attributes:
        weight: ``partitions``: each subject weighs as many as it has; ``equal``: each weighs 1;
            ``partition-time``: what is summed up are the times of partitions themselves.
        subjects: How many they are.
    """

    statement: Statement
    weight: str
    subjects: int

    def told(self) -> dict[str, Any]:
        """As JSON has it."""
        one = self.statement
        return {
            "cluster": one.subject.cluster,
            "objective": one.objective.name,
            "topic": one.subject.topic,
            "weight": self.weight,
            "subjects": self.subjects,
            **one.figures(),
        }


def by_cluster(stated: Sequence[Statement]) -> list[Weighted]:
    """Each objective over all its subjects of a cluster: topics weigh as many as their partitions.

    A topic of which nobody told how many it has weighs 1, and so does every other subject.
    """
    alike: defaultdict[tuple[str, str], list[Statement]] = defaultdict(list)
    for one in stated:
        alike[one.subject.cluster, one.objective.name].append(one)
    return [
        Weighted(_together(own), _WEIGHTS.get(own[0].subject.kind, "equal"), len(own))
        for own in alike.values()
    ]


def clusters_as_one(stated: Sequence[Statement]) -> list[Statement]:
    """Statements, but one for each cluster where an objective is of level ``cluster``.

    It has no burn rates.
    """
    own = [one for one in stated if one.objective.level == "cluster"]
    rest = [one for one in stated if one.objective.level != "cluster"]
    return rest + [one.statement for one in by_cluster(own)]


def _together(own: Sequence[Statement]) -> Statement:
    whole = _summed(own)
    planned: list[Maintenance] = []
    for one in own:
        planned += (each for each in one.maintenance if each not in planned)
    if not planned:
        return whole
    without = _summed([one.without or one for one in own])
    return replace(whole, maintenance=tuple(planned), without=without)


def _summed(own: Sequence[Statement]) -> Statement:
    expected, ahead, times = 0, 0, [0, 0, 0, 0]
    for one in own:
        weight = partitions(one.subject)
        expected += weight * one.whole_us
        ahead += weight * one.ahead_us
        times = [total + weight * us for total, us in zip(times, one.times, strict=True)]
    subject = Subject(own[0].subject.cluster, "cluster", None, None, None, None, None, 0, 0)
    return Statement(own[0].objective, subject, expected, Times(*times), own[0].period, ahead)


def partitions(one: Subject) -> int:
    """How many a topic has, as told last; 1 where nobody told, and of others."""
    told = one.attributes.get(PARTITIONS_TOLD)
    return max(1, int(told)) if told else 1
