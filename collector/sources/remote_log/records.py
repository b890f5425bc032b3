"""Records of ``__remote_log_metadata`` (KIP-405), decoded by Kafka's own classes.

The local JVM must have the jars kafka-storage, kafka-storage-api and kafka-server-common.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from collector.sources.java.jvm import java

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
