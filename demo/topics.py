from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from demo.errors import DemoError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from demo.cluster import Cluster

_SECONDS = 60
_MORE_ATTEMPTS = 4

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
    for again in (*[True] * _MORE_ATTEMPTS, False):
        admin = cluster.admin()  # kept in a name: without it the futures fail
        (result,) = admin.incremental_alter_configs([resource]).values()
        error = result.exception(_SECONDS)
        if not (again and _was_lost(error)):
            break
    if error:
        raise DemoError(f"Topic {topic} could not be changed: {error}") from error


def replicas_in_sync(cluster: Cluster, topic: str) -> int:
    """The fewest replicas in sync that any partition of the topic has."""
    partitions = cluster.admin().list_topics(topic, timeout=10).topics[topic].partitions
    return min(len(partition.isrs) for partition in partitions.values())


def _create(cluster: Cluster, topics: Sequence[NewTopic]) -> None:
    waiting = {new.topic: new for new in topics}
    for again in (False, *[True] * _MORE_ATTEMPTS):
        admin = cluster.admin()  # kept in a name: without it the futures fail
        admin.list_topics(timeout=10)
        futures = admin.create_topics([*waiting.values()], request_timeout=_SECONDS)
        for topic, future in futures.items():
            error = future.exception(_SECONDS)
            if _was_lost(error):
                continue
            if error and not (again and _code(error) == KafkaError.TOPIC_ALREADY_EXISTS):
                raise DemoError(f"Topic {topic} could not be created: {error}") from error
            del waiting[topic]
        if not waiting:
            return
    raise DemoError(f"Topics {', '.join(waiting)} could not be created: no request was answered")


def _was_lost(error: BaseException | None) -> bool:
    """Whether a request was under way as librdkafka gave up the handle of the bootstrap address.

    It does so some time after it has learnt the brokers' ids. The broker may have answered it.
    """
    return _code(error) == KafkaError._DESTROY_BROKER  # noqa: SLF001 - so librdkafka names its own


def _code(error: BaseException | None) -> int | None:
    return error.args[0].code() if isinstance(error, KafkaException) else None
