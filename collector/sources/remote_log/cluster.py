"""Facts of the Admin API: which partitions a broker leads, their log starts and settings."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from collector.model import Partition
from collector.sources.admin import readings
from collector.sources.admin.client import KafkaAdmin, Topics
from collector.sources.remote_log.figures import CopyRule, copy_rule
from collector.sources.remote_log.metadata_topic import TOPIC, TieredPartition

_INTERVAL: Final = "remote.log.manager.task.interval.ms"
_USUAL_INTERVAL: Final = "30000"
_SETTINGS_US: Final = 30_000_000


class Cluster(NamedTuple):
    """Facts at one instant.

    Attributes:
        id: Cluster ID.
        topic_id: ID of the metadata topic.
        logs: Number of its partitions. 0: the topic does not exist, or is hidden.
        is_hidden: True if the agent's principal may not describe it.
        starts: First offsets of the partitions with remote storage that the broker leads.
        pending: First offset to copy, of partitions for which it was requested.
        rules: When segments are copied, by topic.
        interval_us: Time between two runs of the broker's tasks.
        topic_ids: IDs of all topics. None: another agent reports segments of deleted topics.
    """

    id: str
    topic_id: str
    logs: int
    is_hidden: bool
    starts: Mapping[TieredPartition, int]
    pending: Mapping[TieredPartition, int]
    rules: Mapping[str, CopyRule]
    interval_us: int
    topic_ids: frozenset[str] | None


class ClusterReader:
    """Reads the facts for one broker.

    Args:
        node: Node ID of the broker.
        steady_us: Steady clock, microseconds.
    """

    def __init__(self, node: int, steady_us: Callable[[], int]) -> None:
        self._node, self._steady_us = node, steady_us
        self._configs: dict[str, dict[str, str]] = {}
        self._interval_us = 0
        self._configured_us = -_SETTINGS_US

    def read(self, client: KafkaAdmin, is_foreign: Callable[[TieredPartition], bool]) -> Cluster:
        """Return the facts.

        Args:
            client: Admin client.
            is_foreign: Whether the copied offsets of a partition are of another log, so that only
                its leader can report what is copied.
        """
        found = client.cluster()
        for_all = readings.reports_for_all(found, self._node)
        topics, ids = client.topics(None if for_all else self._node)
        led = self._led(client, topics, ids)
        foreign = [one for one in led if is_foreign(one)]
        return Cluster(
            found.id,
            ids.get(TOPIC, ""),
            len(topics.get(TOPIC, ())),
            TOPIC not in topics and client.is_hidden(TOPIC),
            _offsets(client, led, "earliest"),
            _offsets(client, foreign, "earliestPendingUpload"),
            {one.topic: copy_rule(self._configs[one.topic]) for one in led},
            self._interval_us,
            frozenset(ids.values()) if for_all else None,
        )

    def _led(
        self, client: KafkaAdmin, topics: Topics, ids: Mapping[str, str]
    ) -> list[TieredPartition]:
        """Return the partitions with remote storage that the broker leads."""
        led = [
            TieredPartition(ids[topic], topic, one.partition)
            for topic, states in topics.items()
            if topic in ids
            for one in states
            if one.leader == self._node
        ]
        self._configure(client, {one.topic for one in led})
        return [one for one in led if readings.is_tiered(self._configs.get(one.topic, {}))]

    def _configure(self, client: KafkaAdmin, topics: set[str]) -> None:
        """Read the settings of topics now and then, and of new topics at once."""
        is_old = self._steady_us() - self._configured_us >= _SETTINGS_US
        if is_old or topics - self._configs.keys():
            self._configs = client.configs(topics)
            interval = client.broker_settings(self._node, (_INTERVAL,))
            self._interval_us = int(interval.get(_INTERVAL, _USUAL_INTERVAL)) * 1000
            self._configured_us = self._steady_us()


def _offsets(
    client: KafkaAdmin, partitions: list[TieredPartition], kind: str
) -> dict[TieredPartition, int]:
    if not partitions:
        return {}
    found = client.offsets([Partition(*one[1:]) for one in partitions], kind)
    return {one: found[at] for one in partitions if (at := Partition(*one[1:])) in found}
