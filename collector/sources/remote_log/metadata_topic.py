"""The topic ``__remote_log_metadata`` (KIP-405): its records, and its consumer.

Kafka's own classes decode the records, so the local JVM must have the jars kafka-storage,
kafka-storage-api and kafka-server-common. The consumer does not use a group. It needs the
permissions Read and Describe on the topic.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from collector.sources.java.jvm import detach, java

TOPIC: Final = "__remote_log_metadata"

State = Literal["copying", "copied", "deleting", "deleted"]

_COMMON: Final = "org.apache.kafka.common"
_STORAGE: Final = "org.apache.kafka.server.log.remote.metadata.storage"
_STATES: Final[dict[str, State]] = {
    "COPY_SEGMENT_STARTED": "copying",
    "COPY_SEGMENT_FINISHED": "copied",
    "DELETE_SEGMENT_STARTED": "deleting",
    "DELETE_SEGMENT_FINISHED": "deleted",
}
_LONGEST_ERROR: Final = 120
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


class TieredPartition(NamedTuple):
    """A partition. A topic that is deleted and created again has another ID."""

    topic_id: str
    topic: str
    partition: int


class Extent(NamedTuple):
    """Extent of a segment.

    Attributes:
        start: First offset.
        end: Last offset.
        size: Bytes of the log file.
    """

    start: int
    end: int
    size: int


class SegmentEvent(NamedTuple):
    """A new remote segment, or a change of its state.

    Attributes:
        partition: Its partition.
        segment: ID of the segment.
        state: The new state.
        at_us: Time of the change, by the clock of the broker that made it.
        broker: Node ID of that broker.
        extent: Extent of a new segment. None: the event changes a known segment.
    """

    partition: TieredPartition
    segment: str
    state: State
    at_us: int
    broker: int
    extent: Extent | None = None


class Unreadable(NamedTuple):
    """A record that this version of Kafka's classes cannot decode."""

    why: str


Event = SegmentEvent | Unreadable | None
"""Content of a record. None: a tombstone, or a record about a whole partition."""


class Record(NamedTuple):
    """A record of the topic.

    Attributes:
        log: Partition of the metadata topic.
        offset: Its offset.
        event: Its content.
    """

    log: int
    offset: int
    event: Event


def decoder() -> Callable[[Any], Event]:
    """Return a function from a record's value, a byte array of Java, to its content."""
    serde = java(f"{_STORAGE}.serialization.RemoteLogMetadataSerde")()
    error = java("java.lang.Exception")

    def decoded(value: Any) -> Event:
        if value is None:  # KIP-1266 deletes keys
            return None
        try:
            return _event(serde.deserialize(value))
        except (error, KeyError, ValueError) as why:
            return Unreadable(_reason(why))

    return decoded


def _reason(error: Exception) -> str:
    """Return the class and text of the first cause in one line."""
    cause: Any = error
    while (earlier := getattr(cause, "getCause", lambda: None)()) is not None:
        cause = earlier
    name = type(cause).__name__.rpartition(".")[2]
    text = getattr(cause, "getMessage", lambda: cause)()
    return " ".join(f"{name}: {text}".split())[:_LONGEST_ERROR]


@cache
def partitioner(logs: int) -> Callable[[TieredPartition], int]:
    """Return a function from a partition to the partition of the metadata topic for it.

    Args:
        logs: Number of partitions of the metadata topic.
    """
    found = java(f"{_STORAGE}.RemoteLogMetadataTopicPartitioner")(logs)
    uuid, plain = java(f"{_COMMON}.Uuid"), java(f"{_COMMON}.TopicPartition")
    with_id = java(f"{_COMMON}.TopicIdPartition")

    @cache
    def log_of(partition: TieredPartition) -> int:
        named = plain(partition.topic, partition.partition)
        return int(found.metadataPartition(with_id(uuid.fromString(partition.topic_id), named)))

    return log_of


def _event(message: Any) -> Event:
    if not hasattr(message, "remoteLogSegmentId"):
        return None  # RemotePartitionDeleteMetadata: the segments have records of their own
    at, state = message.topicIdPartition(), _STATES[str(message.state().name())]
    extent = None
    if hasattr(message, "startOffset"):
        extent = Extent(
            int(message.startOffset()), int(message.endOffset()), int(message.segmentSizeInBytes())
        )
    return SegmentEvent(
        TieredPartition(str(at.topicId()), str(at.topic()), int(at.partition())),
        str(message.remoteLogSegmentId().id()),
        state,
        int(message.eventTimestampMs()) * 1000,
        int(message.brokerId()),
        extent,
    )


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
