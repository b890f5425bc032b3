"""Commits of groups that nobody is a member of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from demo.cluster import Cluster

_COORDINATOR_COMES_UP: Final = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
}


def commit(cluster: Cluster, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets by topic and partition.

    The first commit of a cluster makes the topic that holds them, and a broker that has come back
    reads it first: until then nobody is a group's coordinator.
    """
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    at = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]

    def committed() -> bool:
        try:
            consumer.commit(offsets=at, asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in _COORDINATOR_COMES_UP:
                raise
            return False
        return True

    wait_for(committed, 60)
    consumer.close()
