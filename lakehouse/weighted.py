"""Figures of many as one: of topics as their cluster's, of partitions as their topic's.

Sums of times by weight, so that bounds stay bounds and unknown time stays unknown. What they mean
beside the worst subject and beside the union is in docs/objectives.md.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakehouse.asked import SUBJECT
from lakehouse.existence import Subject
from lakehouse.statement import Statement
from lakehouse.tallied import Times

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTITIONS: Final = "kafka.topic.partitions"


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
    return [_together(cluster, own) for (cluster, _), own in alike.items()]


def _together(cluster: str, own: Sequence[Statement]) -> Weighted:
    of_topics = own[0].objective.level == "topic"
    expected, ahead, times = 0, 0, [0, 0, 0, 0]
    for one in own:
        weight = partitions(one.subject) if of_topics else 1
        expected += weight * one.whole_us
        ahead += weight * one.ahead_us
        times = [total + weight * us for total, us in zip(times, one.times, strict=True)]
    names = dict.fromkeys(SUBJECT)
    subject = Subject(cluster, "cluster", **names, first_us=0, last_us=0)
    whole = Statement(own[0].objective, subject, expected, Times(*times), own[0].period, ahead)
    return Weighted(whole, "partitions" if of_topics else "equal", len(own))


def partitions(one: Subject) -> int:
    """How many a topic has, as told last; 1 where nobody told."""
    told = one.attributes.get(PARTITIONS)
    return max(1, int(told)) if told else 1
