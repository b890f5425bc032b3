"""Questions to a JVM about its beans: an attribute of all that fit an object name pattern."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from collector.catalogue import Family, Metric


class Question(NamedTuple):
    """One attribute of all beans that fit an object name pattern."""

    pattern: str
    attribute: str


class Failed(str):
    """Stands for a value that the other side could not read: why, in one line."""


Answers = Mapping[Question, Mapping[str, object]]
"""Values by bean name: a number, None for NaN, or ``Failed``. What is not there is absent."""

LEADERS: Final = Question("kafka.server:type=ReplicaManager,name=LeaderCount", "Value")
"""How many partitions a broker leads, by its own count."""

IN_SYNC: Final = Metric(
    name="kafka.partition.in_sync_replicas",
    unit="{replica}",
    description="Only a leader knows who is in sync: a broker leads where this is above zero.",
    object="kafka.cluster:type=Partition,name=InSyncReplicasCount,topic=*,partition=*",
    labels={"topic": "topic", "partition": "partition"},
    led=True,
)


def asked_for(metric: Metric) -> list[Question]:
    """The questions of one metric, that of the preferred name first."""
    return [Question(pattern, metric.attribute_name) for pattern in metric.patterns]


def all_asked(family: Family) -> tuple[Question, ...]:
    """All questions of a family, each once."""
    metrics = list(family.metrics)
    if any(metric.led for metric in metrics):
        metrics.append(IN_SYNC)
    return tuple(dict.fromkeys(question for metric in metrics for question in asked_for(metric)))
