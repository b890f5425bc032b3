"""Consumer of ``__remote_log_metadata``, without a consumer group.

It needs the permissions Read and Describe on that topic.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from collector.sources.java.jvm import detach, java
from collector.sources.remote_log.records import TOPIC, Record, decoder

_MOST_RECORDS: Final = 20_000
"""Limit of one read, about a second of CPU time."""

_SETTINGS: Final = {
    "auto.offset.reset": "none",
    "enable.auto.commit": "false",
    "allow.auto.create.topics": "false",
    # Small buffers: a record has 100 bytes, and the agent's heap is small.
    "fetch.max.bytes": "1048576",
    "max.partition.fetch.bytes": "262144",
    "max.poll.records": "2000",
}
_POLL_MS: Final = 200


class Batch(NamedTuple):
    """Result of one read.

    Attributes:
        at_us: Instant before the ends of the partitions were requested.
        records: New records.
        next_offsets: Next offset of each partition of the topic.
        ends: End offset of each partition at ``at_us``.
        restarted: Partitions whose requested offset does not exist, with their first offset. Their
            records start there.
    """

    at_us: int
    records: tuple[Record, ...]
    next_offsets: Mapping[int, int]
    ends: Mapping[int, int]
    restarted: Mapping[int, int]


class MetadataTopic:
    """Reads partitions of the topic up to their ends.

    Args:
        properties: Java properties of a Kafka client.
        wall_us: Wall clock, microseconds.
    """

    def __init__(self, properties: Any, wall_us: Callable[[], int]) -> None:
        self._wall_us = wall_us
        for name in ("group.id", "group.instance.id", "interceptor.classes"):
            properties.remove(name)
        for key, value in _SETTINGS.items():
            properties.setProperty(key, value)
        of_bytes = java("org.apache.kafka.common.serialization.ByteArrayDeserializer")
        consumer = java("org.apache.kafka.clients.consumer.KafkaConsumer")
        self._consumer = consumer(properties, of_bytes(), of_bytes())
        self._decoded = decoder()
        self._at: dict[int, int] = {}

    def read(self, offsets: Mapping[int, int], seconds: float) -> Batch:
        """Read partitions from these offsets to their ends, or until a limit is reached.

        Args:
            offsets: Next offset of each partition.
            seconds: Time limit of requests and of waiting for records.

        Raises:
            java.lang.Exception: The cluster did not respond or refused the request.
        """
        until, patience = time.monotonic() + seconds, self._duration(seconds)
        places = {
            log: java("org.apache.kafka.common.TopicPartition")(TOPIC, log) for log in offsets
        }
        listed = java("java.util.ArrayList")(list(places.values()))
        if self._at.keys() != offsets.keys():
            self._consumer.assign(listed)
            self._at = {log: at for log, at in self._at.items() if log in offsets}
        begins = self._consumer.beginningOffsets(listed, patience)
        at_us = self._wall_us()
        found = self._consumer.endOffsets(listed, patience)
        ends = {log: int(found.get(place)) for log, place in places.items()}
        restarted = {}
        for log, place in places.items():
            first, wanted = int(begins.get(place)), offsets[log]
            if not first <= wanted <= ends[log]:
                restarted[log] = wanted = first
            if self._at.get(log) != wanted:
                self._consumer.seek(place, wanted)
        records = tuple(self._records(places, ends, until))
        self._at = {log: int(self._consumer.position(place)) for log, place in places.items()}
        return Batch(at_us, records, dict(self._at), ends, restarted)

    def close(self) -> None:
        """Close the consumer. It can be in use by another thread."""
        try:
            self._consumer.wakeup()
            self._consumer.close(self._duration(1))
        finally:
            detach()

    def _records(
        self, places: Mapping[int, Any], ends: Mapping[int, int], until: float
    ) -> Iterator[Record]:
        count = 0
        while time.monotonic() < until and count < _MOST_RECORDS:
            if all(int(self._consumer.position(one)) >= ends[log] for log, one in places.items()):
                return
            for record in self._consumer.poll(self._duration(_POLL_MS / 1000)):
                count += 1
                yield Record(
                    int(record.partition()), int(record.offset()), self._decoded(record.value())
                )

    def _duration(self, seconds: float) -> Any:
        return java("java.time.Duration").ofMillis(round(seconds * 1000))
