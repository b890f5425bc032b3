from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from demo.errors import DemoError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

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
    _ask(cluster, lambda admin: admin.incremental_alter_configs([resource]), topic, "changed")


def delete(cluster: Cluster, topic: str) -> None:
    """Delete a topic; brokers hear of it a little later.

    Raises:
        DemoError: Kafka refused it.
    """
    gone = KafkaError.UNKNOWN_TOPIC_OR_PART
    _ask(cluster, lambda admin: admin.delete_topics([topic]), topic, "deleted", gone)


def delete_records(cluster: Cluster, topic: str, offset: int) -> None:
    """Move the log's start of a topic's first partition, as retention does.

    Raises:
        DemoError: Kafka refused it.
    """
    until = TopicPartition(topic, 0, offset)
    _ask(cluster, lambda admin: admin.delete_records([until]), topic, "shortened")


def replicas_in_sync(cluster: Cluster, topic: str) -> int:
    """The fewest replicas in sync that any partition of the topic has.

    0: the broker that was asked has not heard of the topic, as shortly after it was created.
    """
    partitions = cluster.admin().list_topics(topic, timeout=_SECONDS).topics[topic].partitions
    return min((len(partition.isrs) for partition in partitions.values()), default=0)


def _create(cluster: Cluster, topics: Sequence[NewTopic]) -> None:
    waiting = {new.topic: new for new in topics}
    for again in (False, *[True] * _MORE_ATTEMPTS):
        admin = cluster.admin()  # kept in a name: without it the futures fail
        admin.list_topics(timeout=_SECONDS)
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


def _ask(
    cluster: Cluster,
    request: Callable[[AdminClient], Mapping[Any, Future[Any]]],
    topic: str,
    done: str,
    done_before: int | None = None,
) -> None:
    """Make a request of one topic, and make it again where it was lost.

    Args:
        cluster: Who is asked.
        request: Makes it.
        topic: The topic.
        done: What is done with it, for the error.
        done_before: The error that says that a lost request was heard.
    """
    lost = 0
    while True:
        admin = cluster.admin()  # kept in a name: without it the futures fail
        (result,) = request(admin).values()
        error = result.exception(_SECONDS)
        if not _was_lost(error) or lost == _MORE_ATTEMPTS:
            break
        lost += 1
    if error and not (lost and _code(error) == done_before):
        raise DemoError(f"Topic {topic} could not be {done}: {error}") from error


def _was_lost(error: BaseException | None) -> bool:
    """Whether a request was under way as librdkafka gave up the handle of the bootstrap address.

    It does so some time after it has learnt the brokers' ids. The broker may have answered it.
    """
    return _code(error) == KafkaError._DESTROY_BROKER  # noqa: SLF001 - so librdkafka names its own


def _code(error: BaseException | None) -> int | None:
    return error.args[0].code() if isinstance(error, KafkaException) else None
