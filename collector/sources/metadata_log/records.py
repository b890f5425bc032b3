"""Records of the controllers' log that affect the state of partitions.

Kafka's own classes decode them, so the local JVM must have been started with ``metadata_log.libs``.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from collector.errors import ConfigError
from collector.sources.java.jvm import java

_MIN_ISR: Final = "min.insync.replicas"
_TOPIC, _BROKER = 2, 4  # ConfigResource.Type
_SAME_LEADER: Final = -2
_RECOVERING: Final = {0: False, 1: True}  # LeaderRecoveryState; -1: no change
_UNFENCED, _FENCED = -1, 1  # BrokerRegistrationChangeRecord.Fenced; 0: no change
_PACKAGES: Final = tuple(
    f"org.apache.kafka.common.{package}"
    for package in ("record.internal", "record", "utils.internals", "utils")
)


class TopicCreated(NamedTuple):
    """A topic and its ID. A topic that is deleted and created again has another ID."""

    id: str
    name: str


class TopicRemoved(NamedTuple):
    """A topic was deleted with its partitions and settings."""

    id: str


class PartitionChange(NamedTuple):
    """New state of a partition. None: unchanged.

    Attributes:
        topic_id: Topic ID.
        partition: Partition number.
        leader: Node ID. -1: no leader.
        in_sync: Number of replicas in sync.
        replicas: Number of replicas, including replicas that a reassignment adds.
        adding: Brokers that a reassignment adds.
        removing: Brokers that a reassignment removes.
        recovering: Whether the leader was not in sync at its election and has not recovered.
    """

    topic_id: str
    partition: int
    leader: int | None
    in_sync: int | None
    replicas: int | None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovering: bool | None = None


class MinIsrSetting(NamedTuple):
    """A setting of min.insync.replicas. None: removed.

    Exactly one of ``topic`` and ``broker`` is set. Broker "" is the cluster's default.
    """

    topic: str | None
    broker: str | None
    value: int | None


class BrokerState(NamedTuple):
    """A broker is fenced or unfenced. An unregistered broker counts as fenced."""

    id: int
    fenced: bool


class TransactionMark(NamedTuple):
    """A mark of a transaction. Its records apply at its ``end``, or never after an ``abort``."""

    kind: str


Record = (
    TopicCreated | TopicRemoved | PartitionChange | MinIsrSetting | BrokerState | TransactionMark
)


class Place(NamedTuple):
    """The position of a batch in the log. Epoch and checksum identify the batch at an offset.

    Attributes:
        segment: First offset of the file.
        position: Position in the file, in bytes.
        offset: First offset of the batch.
        epoch: Epoch of the leader that wrote the batch.
        checksum: CRC of the batch.
    """

    segment: int
    position: int
    offset: int
    epoch: int
    checksum: int


class LogBatch(NamedTuple):
    """Records that the controller wrote atomically.

    Attributes:
        place: Position.
        next_offset: Offset after the last record.
        at_us: Write time, by the controller's clock.
        records: Relevant records.
    """

    place: Place
    next_offset: int
    at_us: int
    records: tuple[Record, ...]


@cache
def record_class(name: str) -> Any:
    """Return a class of Kafka's log format. Kafka 4.2 and 4.4 moved some to other packages.

    Raises:
        ConfigError: The class is in none of the packages.
    """
    for package in _PACKAGES:
        try:
            return java(f"{package}.{name}")
        except TypeError:  # JPype raises it for a missing class
            continue
    raise ConfigError(
        f"kafka-clients does not have {name}; set metadata_log.libs to a broker's libs folder"
    )


def decoded(batch: Any) -> Iterator[Record]:
    """Yield the relevant records of a batch that is not a control batch."""
    with _entries(batch) as entries:
        yield from filter(None, map(_decoded, entries))


def snapshot_ms(batch: Any) -> int:
    """Return the write time of a snapshot's last record, from its header batch."""
    with _entries(batch) as entries:
        header = record_class("ControlRecordUtils").deserializeSnapshotHeaderRecord(entries.next())
        return int(header.lastContainedLogTimestamp())


def _entries(batch: Any) -> Any:
    return batch.streamingIterator(record_class("BufferSupplier").NO_CACHING)


def _decoded(entry: Any) -> Record | None:
    readable, value = java("org.apache.kafka.common.protocol.ByteBufferAccessor"), entry.value()
    header = readable(value.duplicate())
    header.readUnsignedVarint()  # the version of the frame
    decode = _DECODERS.get(int(header.readUnsignedVarint()))
    if decode is None:  # other records, such as credentials, are not decoded
        return None
    serde = java("org.apache.kafka.metadata.MetadataRecordSerde")()
    return decode(serde.read(readable(value), entry.valueSize()).message())


def _partition(message: Any) -> Record:
    leader, isr, replicas = int(message.leader()), message.isr(), message.replicas()
    return PartitionChange(
        str(message.topicId()),
        int(message.partitionId()),
        None if leader == _SAME_LEADER else leader,
        None if isr is None else int(isr.size()),
        None if replicas is None else int(replicas.size()),
        _brokers(message.addingReplicas()),
        _brokers(message.removingReplicas()),
        _RECOVERING.get(int(message.leaderRecoveryState())),
    )


def _brokers(listed: Any) -> tuple[int, ...] | None:
    return None if listed is None else tuple(map(int, listed))


def _config(message: Any) -> Record | None:
    if str(message.name()) != _MIN_ISR:
        return None
    kind, name, text = int(message.resourceType()), str(message.resourceName()), message.value()
    value = None if text is None else int(str(text))
    subject = {_TOPIC: (name, None), _BROKER: (None, name)}.get(kind)
    return None if subject is None else MinIsrSetting(*subject, value)


def _registration(message: Any) -> Record | None:
    fenced = int(message.fenced())
    if fenced not in (_UNFENCED, _FENCED):
        return None
    return BrokerState(int(message.brokerId()), fenced == _FENCED)


_DECODERS: Final[dict[int, Callable[[Any], Record | None]]] = {  # by apiKey
    0: lambda message: BrokerState(int(message.brokerId()), bool(message.fenced())),
    1: lambda message: BrokerState(int(message.brokerId()), fenced=True),  # unregistered
    2: lambda message: TopicCreated(str(message.topicId()), str(message.name())),
    3: _partition,
    4: _config,
    5: _partition,
    7: lambda message: BrokerState(int(message.id()), fenced=True),
    8: lambda message: BrokerState(int(message.id()), fenced=False),
    9: lambda message: TopicRemoved(str(message.topicId())),
    17: _registration,
    23: lambda _: TransactionMark("begin"),
    24: lambda _: TransactionMark("end"),
    25: lambda _: TransactionMark("abort"),
}
