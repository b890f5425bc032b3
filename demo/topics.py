from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from demo.errors import DemoError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.cluster import Cluster

_SECONDS = 60

HEALTHY = [f"healthy-{number:02}" for number in range(30)]
_HEALTHY_PARTITIONS = 10


def create_assigned(
    cluster: Cluster, topic: str, replicas: Sequence[Sequence[int]], **config: str
) -> None:
    """Create a topic with its replicas on given brokers, the first of each being the leader.

    Configuration keys are written with underscores for dots.

    Raises:
        DemoError: Kafka refused it.
    """
    settings = {key.replace("_", "."): value for key, value in config.items()}
    assignment = [list(brokers) for brokers in replicas]
    new = NewTopic(topic, len(assignment), replica_assignment=assignment, config=settings)
    _create(cluster, [new])


def create_healthy(cluster: Cluster, topics: Sequence[str] = HEALTHY) -> None:
    """Create topics to which nothing happens but what must: most of a cluster is like that.

    Raises:
        DemoError: Kafka refused them.
    """
    replicas = min(3, len(cluster.brokers))
    _create(cluster, [NewTopic(topic, _HEALTHY_PARTITIONS, replicas) for topic in topics])


def configure(cluster: Cluster, topic: str, settings: Mapping[str, str]) -> None:
    """Change settings of a topic.

    Raises:
        DemoError: Kafka refused them.
    """
    changes = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=changes)
    admin = cluster.admin()  # kept in a name: without it the futures fail
    for result in admin.incremental_alter_configs([resource]).values():
        result.result(_SECONDS)


def replicas_in_sync(cluster: Cluster, topic: str) -> int:
    """The fewest replicas in sync that any partition of the topic has."""
    partitions = cluster.admin().list_topics(topic, timeout=10).topics[topic].partitions
    return min(len(partition.isrs) for partition in partitions.values())


def _create(cluster: Cluster, topics: list[NewTopic]) -> None:
    admin = cluster.admin()  # kept in a name: without it the futures fail
    # A request that is under way while librdkafka learns the brokers' ids can fail with the handle
    # of the bootstrap address (_DESTROY_BROKER).
    admin.list_topics(timeout=10)
    futures = admin.create_topics(topics, request_timeout=_SECONDS)
    for topic, future in futures.items():
        if error := future.exception(_SECONDS):
            raise DemoError(f"Topic {topic} could not be created: {error}") from error
